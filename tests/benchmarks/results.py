"""What was measured, a file a section: ``docs/results/<section>.json``, written whole after every cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_json, write_json
from tests.benchmarks.machine import machine, versions
from tests.benchmarks.section import Row, Scale

ANEW = "start again with ANEW=1 (--anew), or name another folder with --results"


@dataclass
class Results:
    """Rows of one section, all from one machine and one set of packages.

    Raises:
        InputError: Reading a file of another section, machine, set of packages or scale: figures that are to be
            compared are measured in one place.
    """

    section: str
    scale: Scale
    machine: dict[str, Any] = field(default_factory=machine)
    versions: dict[str, str] = field(default_factory=versions)
    rows: dict[str, Row] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Results:
        return cls(**read_json(path, how="measure the section again"))

    @classmethod
    def resumed(cls, path: Path, section: str, scale: Scale) -> Results:
        """What is there already, to go on with; nothing where there is no file."""
        new = cls(section, scale)
        if not path.exists():
            return new
        old = cls.read(path)
        if all("skipped" in row for row in old.rows.values()):
            return new  # nothing was measured there; perhaps it can be here
        for name in ("section", "scale", "machine", "versions"):
            there, here = getattr(old, name), getattr(new, name)
            if there != here:
                raise InputError(f"other {name}: {there}, and here {here}", where=str(path), how=ANEW)
        return old

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, vars(self))

    def source(self) -> str:
        """One line for below a table: the command, the time, the machine, the versions."""
        dates = sorted({str(row["date"])[:10] for row in self.rows.values() if "date" in row})
        when = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "never"
        commits = ", ".join(dict.fromkeys(str(row["commit"]) for row in self.rows.values() if row.get("commit")))
        gpu = "" if self.machine["gpu"] == "none" else f", {self.machine['gpu']}"
        where = f"{self.machine['processor']}, {self.machine['cores']} cores, {self.machine['memory_gib']} GiB{gpu}"
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items() if number != "-")
        return f"`make bench SECTIONS={self.section}`, {when}, on {where}; commit {commits}; {packages}."
