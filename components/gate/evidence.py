"""What the gate judges by: what a run left, each part as read or as the error that reading it gave. What a check is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from components.checkpoints.checks import check_checkpoint
from components.config import Settings
from components.errors import InputError
from components.files import read_json, sha256_json
from components.health.records import read_records, read_verdicts
from components.health.responses import read_ledger
from components.layout import Layout
from components.types import GateResult

Answer = tuple[GateResult, str]
"""The result and a sentence of evidence for it."""
AGAIN = "run the stage that writes it once more, and those after it: evenkeel run --resume RUN-ID"
ROUNDING = 1e-9
"""By which a mean may lie beyond an end of its interval: both are sums of many numbers."""


@dataclass(frozen=True)
class Evidence:
    """What a run left, each part as read or as the error that reading it gave."""

    parts: Mapping[str, Any]

    def read(self, name: str) -> Any:
        """One part.

        Raises:
            InputError: it is missing or unreadable.
        """
        part = self.parts.get(name, InputError("there is none"))
        if isinstance(part, InputError):
            raise InputError(f"{name}: {part.what}") from part
        return part

    def value(self, name: str, *keys: str) -> Any:
        """A value inside a part.

        Raises:
            InputError: there is no such value, or it is null.
        """
        value = self.read(name)
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            raise InputError(f"{name}: there is no {'.'.join(keys)}")
        return value

    def number(self, name: str, *keys: str) -> float:
        """A finite number inside a part.

        Raises:
            InputError: missing, or not a finite number.
        """
        value = self.value(name, *keys)
        try:
            if not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value):
                return float(value)
        except OverflowError:  # JSON has integers of any size
            raise InputError(f"{name}: {'.'.join(keys)} is larger than any figure") from None
        raise InputError(f"{name}: {'.'.join(keys)} is not a finite number: {value!r}")

    def share(self, name: str, *keys: str) -> float:
        """A number from 0 to 1 inside a part.

        Raises:
            InputError: missing, not a finite number, or no share of anything.
        """
        value = self.number(name, *keys)
        if not 0 <= value <= 1:
            raise InputError(f"{name}: {'.'.join(keys)} cannot be a share: {value:g}")
        return value

    def gain(self, name: str, *keys: str) -> tuple[float, float, float]:
        """A difference of two shares inside a part: its mean, and the lower and the upper end of its interval.

        Raises:
            InputError: one of the three is missing or not a finite number, or they cannot be those of one difference.
        """
        mean, low, high = (self.number(name, *keys, key) for key in ("mean", "low", "high"))
        if not -1 <= low <= mean + ROUNDING or not mean - ROUNDING <= high <= 1:
            figures = f"mean {mean:g}, low {low:g}, high {high:g}"
            raise InputError(f"{'.'.join((name, *keys))} cannot be a difference of two shares: {figures}")
        return mean, low, high


@dataclass(frozen=True, slots=True)
class Check:
    """``judge`` answers from the evidence and the settings it is judged by; it may raise `InputError` where evidence is
    missing, which is a fail. ``how`` says what would change an answer that is not a pass, ``missing`` what would where
    the evidence is not there or cannot be read."""

    judge: Callable[[Evidence, Settings], Answer]
    how: str
    missing: str = AGAIN


def collect(layout: Layout, **others: Callable[[], Any]) -> Evidence:
    """Read everything that the gate's checks need.

    Args:
        others: more parts, by name, or other readers of those that there are.
    """
    readers: dict[str, Callable[[], Any]] = {
        "validation": lambda: read_json(layout.validation),
        "audit": lambda: read_json(layout.audit),
        "admission": lambda: read_json(layout.admission),
        "triage": lambda: read_json(layout.triage),
        "train": lambda: read_json(layout.train_metrics),
        "evaluation": lambda: read_json(layout.evaluation),
        "canaries": lambda: read_json(layout.canaries),
        "records": lambda: read_records(layout.records),
        "verdicts": lambda: read_verdicts(layout.train / "verdicts.jsonl"),
        "ledger": lambda: read_ledger(layout.ledger),
        "checkpoint": lambda: sha256_json(check_checkpoint(layout.train_checkpoint)),
        **others,
    }
    return Evidence({name: attempt(reader) for name, reader in readers.items()})


def attempt(reader: Callable[[], Any]) -> Any:
    """The evidence, or the reason why there is none: the check that needs it fails and says so."""
    try:
        return reader()
    except InputError as error:
        return error
