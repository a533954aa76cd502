"""The probe sets that settings name, read and checked before a step is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple
from pathlib import Path

from components.canaries.bbq import bbq
from components.canaries.generated import generate
from components.canaries.items import Probe, ProbeSet
from components.canaries.loaders import Row, crows_pairs, layout, multiple_choice, qa, read_rows, refusal
from components.config.canaries import CanarySettings, Format
from components.config.pins import check_digest
from components.errors import InputError
from components.files import sha256_json

LOADERS: dict[Format, tuple[Callable[[Row, CanarySettings], Probe], str]] = {
    "qa": (qa, "`question` and `answer`"),
    "bbq": (bbq, "`context`, `question`, `ans0` to `ans2` and `label`"),
    "crows_pairs": (crows_pairs, "`sent_more` and `sent_less`"),
    "refusal": (refusal, "`prompt` and `should_refuse`"),
    "format": (layout, "`question` and `pattern`"),
    "multiple_choice": (multiple_choice, "`question`, `choices` and `answer`"),
}
"""Format -> the reader of one row, and the fields of a row."""


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


def read_probes(path: Path, settings: CanarySettings) -> tuple[Probe, ...]:
    """The probes of one file, in its order.

    Raises:
        InputError: the file is missing, empty or malformed, or a row cannot be scored in a requested way; names
            the line.
    """
    probes = []
    read, fields = LOADERS[settings.format]
    for row in read_rows(path):
        probe = read(row, settings)
        if "likelihood" in settings.by and len(probe.choices) < 2:
            wanted = "choices" if settings.format == "format" else "wrong"
            raise row.error("by likelihood answers are compared, and this row has none", f"give `{wanted}`")
        probes.append(probe)
    if not probes:
        raise InputError("no probes", where=path, how=f"give rows with {fields}")
    return tuple(probes)
