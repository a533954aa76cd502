"""The kinds of stores."""

from __future__ import annotations

from collections.abc import Callable

from components.config.registry import RegistrySettings
from components.registry.base import Store
from components.registry.directory import DirectoryStore


def _s3(settings: RegistrySettings) -> Store:
    from components.registry.s3 import S3Store  # loads boto3

    return S3Store(settings)


STORES: dict[str, Callable[[RegistrySettings], Store]] = {
    "directory": lambda settings: DirectoryStore(settings.path),
    "s3": _s3,
}


def open_store(settings: RegistrySettings) -> Store:
    """The store the settings name."""
    return STORES[settings.kind](settings)
