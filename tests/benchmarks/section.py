"""A section of the benchmarks: cells that are measured one by one, and the figures that come of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

Scale = Literal["full", "smoke"]
"""``smoke`` shows in seconds that a section runs; its figures mean nothing and are never committed."""
Row = dict[str, Any]
"""What a cell measured: JSON, with units in the names of its fields (``seconds``, ``tokens_per_s``, ``peak_mb``)."""
Rows = Mapping[str, Row]
"""Rows by cell, in the order of the cells."""
PREPARED = "prepared"
"""The one thing in the folder of a section that is there for its next cell."""


class Section(ABC):
    """One question, answered side by side.

    Every cell is measured in a process of its own, so that the peak of its memory and its warm-up are its own. Cells
    that are compared with each other stand next to each other.
    """

    title: ClassVar[str]
    limit: ClassVar[float] = 900.0
    """Seconds that one cell may take."""
    resumes: ClassVar[bool] = False
    """A cell that was ended goes on with what it left in its folder, if it is measured again by the same code."""

    @abstractmethod
    def cells(self, scale: Scale) -> Sequence[str]:
        """Names of all measurements, in the order in which they are made."""

    @abstractmethod
    def measure(self, cell: str, scale: Scale, folder: Path) -> Row:
        """Make one measurement, alone in its process.

        Args:
            folder: Empty but for ``PREPARED``, where the section may put what all of its cells need, and for what the
                same cell left there when it was ended, if the section resumes.
        """

    def lacking(self) -> str:
        """What this machine has not, without which no cell can be measured; empty where nothing is missing."""
        return ""

    def absent(self) -> dict[str, str]:
        """The figures where nothing has been measured."""
        return {}

    @abstractmethod
    def figures(self, rows: Rows) -> dict[str, str]:
        """Markdown by name: tables, and single figures that a sentence may hold. Pure; rows that are missing are left
        out or named, never guessed."""


def skipped(reason: str) -> Row:
    """The row of a cell that cannot be measured here; figures say why."""
    return {"skipped": reason}
