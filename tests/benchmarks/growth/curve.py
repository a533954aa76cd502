"""What is measured over sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.section import Row

FAMILIES = {"prompts": "prompt", "steps": "step", "checkpoints": "MB", "pods": "pod"}
"""What sizes count, and one of it."""
UNITS = {"s": 1.0, "ms": 1e-3, "mb": 1e6, "kb": 1e3}
"""Of a cost, by the end of its field's name, in seconds or bytes."""
FLOORS = {"s": 0.05, "ms": 1e-4, "mb": 20e6, "kb": 1e3}
"""Costs up to there, in seconds or bytes, are no more than what every process pays, and are no points of a curve."""
PLAIN = "the plain tool's own: measured next to ours, not investigated"
"""Why a plain tool gets steeper."""


@dataclass(frozen=True)
class Cost:
    """One cost of a curve.

    ``field`` is its name in the row, with the unit at its end. ``why`` explains a growth that is faster than linear;
    where such a cost has none the page says "not explained". ``floor``, in seconds or bytes, is in place of its unit's.
    """

    field: str
    what: str
    why: str = ""
    floor: float | None = None

    @property
    def unit(self) -> str:
        return self.field.rpartition("_")[2]

    @property
    def name(self) -> str:
        """The field without its unit."""
        return self.field.rpartition("_")[0]

    @property
    def least(self) -> float:
        """The floor in the unit of the field."""
        return (FLOORS[self.unit] if self.floor is None else self.floor) / UNITS[self.unit]


@dataclass(frozen=True)
class Curve:
    """What ``measure`` finds at each of the ``sizes``, and at the size that ``smoke`` shows it works at.

    ``plain_tools`` names the fields of plain tools for the same work, by the costs that they are compared with.
    """

    family: str
    title: str
    sizes: tuple[int, ...]
    smoke: int
    measure: Callable[[int, Path], Row]
    costs: tuple[Cost, ...]
    plain_tools: tuple[tuple[str, str, str], ...] = ()
    """The cost's field, the field of the plain tool, and its name."""


def label(size: int) -> str:
    """``1e6`` for a power of ten from a thousand on, ``100`` for anything else."""
    zeros = len(str(size)) - 1
    return f"1e{zeros}" if size == 10**zeros and zeros > 2 else str(size)
