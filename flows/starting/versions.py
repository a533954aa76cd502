"""What is installed."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from components.config.shipped import INSTALLED, SHIPPED
from flows.host.git import git, succeeds

PACKAGES = ("evenkeel", "torch", "transformers", "vllm", "prefect", "dvc")


def versions() -> dict[str, str | None]:
    """Name -> version, None for what is not installed; ``commit`` of a checkout, with ``+`` where files differ."""
    found: dict[str, str | None] = {name: _version(name) for name in PACKAGES}
    return {**found, "python": platform.python_version(), "commit": _commit(SHIPPED)}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit(folder: Path) -> str | None:
    if folder == INSTALLED or not succeeds(folder, "rev-parse", "--verify", "--quiet", "HEAD"):
        return None
    edited = git(folder, "status", "--porcelain", "--untracked-files=no")
    return git(folder, "rev-parse", "HEAD") + ("+" if edited else "")
