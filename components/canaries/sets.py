"""The probe sets that settings name, read and checked before a step is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple

from components.canaries.generated import generate
from components.canaries.items import ProbeSet
from components.canaries.loaders import read_probes
from components.config.canaries import CanarySettings
from components.config.pins import check_digest
from components.files import sha256_json


def probe_sets(settings: Mapping[str, CanarySettings]) -> dict[str, ProbeSet]:
    """Every set by its name.

    Raises:
        InputError: a file is missing, empty, malformed, or not the one that the settings name.
    """
    return {name: _probe_set(name, one) for name, one in settings.items()}


def _probe_set(name: str, settings: CanarySettings) -> ProbeSet:
    if settings.path is not None:
        digest = check_digest(settings.path, settings.sha256)
        return ProbeSet(name, read_probes(settings.path, settings), digest)
    if settings.generated is None:
        raise ValueError(f"probe set {name} has neither a path nor a generator")
    probes = generate(settings.generated, settings.items)
    return ProbeSet(name, probes, sha256_json([astuple(probe) for probe in probes]))
