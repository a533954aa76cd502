"""What was measured, a file a section: ``docs/results/<section>.json``, written whole after every cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_json, write_json
from tests.benchmarks.machine import machine, versions
from tests.benchmarks.measured_code import head, same_at_head
from tests.benchmarks.section import Row, Scale
from tests.code_graph import ROOT


@dataclass
class Results:
    """Rows of one section, all from one machine and one set of packages: what is compared is measured in one place."""

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
        """What is there already, to go on with.

        Nothing where there is no file, and where it is of another machine or other packages, which is said: then all
        is measured here. A file of this repository is in its history.

        Raises:
            InputError: The file is of another section or scale.
        """
        new = cls(section, scale)
        if not path.exists():
            return new
        old = cls.read(path)
        if (old.section, old.scale) != (section, scale):
            what = f"holds {old.scale} results of {old.section}, not {scale} ones of {section}"
            raise InputError(what, where=str(path), how="name another folder: --results")
        if not old.measured:
            return new  # perhaps it can be measured here
        for name in ("machine", "versions"):
            there, here = getattr(old, name), getattr(new, name)
            if there != here:
                other = ", ".join(
                    f"{key} {there.get(key)} (here {here[key]})" for key in here if there.get(key) != here[key]
                )
                print(f"{path} is of another machine or other packages, and is measured again: {other}", flush=True)
                return new
        return old

    @property
    def measured(self) -> bool:
        """Whether any row is more than a reason why it could not be measured."""
        return any("skipped" not in row for row in self.rows.values())

    def write(self, path: Path) -> None:
        """Write it whole; not over something measured, where nothing could be measured here."""
        if not self.measured and path.exists() and Results.read(path).measured:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, vars(self))

    def stale(self, root: Path = ROOT) -> str:
        """One line: which cells were measured by other code than HEAD's, and what measures them again; "" if none."""
        commits = {cell: str(row.get("commit", "")) for cell, row in self.rows.items() if "skipped" not in row}
        if not commits:
            return ""
        if not head(root):
            return f"{self.section}: without Git nothing can be known of the code that it was measured by"
        same = {commit: same_at_head(commit, root) for commit in set(commits.values())}
        other = [cell for cell, commit in commits.items() if not same[commit]]
        if not other:
            return ""
        which = "all cells" if len(other) == len(commits) else f"{len(other)} of {len(commits)} cells"
        whose = ", ".join(dict.fromkeys(commits[cell] or "no commit" for cell in other))
        names = f": {', '.join(other)}" if len(other) < len(commits) else ""
        how = f"`make bench FORCE=1 SECTIONS={self.section}` measures again"
        return f"{self.section}: {which} measured by other code than HEAD's ({whose}); {how}{names}"

    def source(self) -> str:
        """One line for below a table: the command, the time, the machine, the versions."""
        dates = sorted({str(row["date"])[:10] for row in self.rows.values() if "date" in row})
        when = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "never"
        commits = ", ".join(dict.fromkeys(str(row["commit"]) for row in self.rows.values() if row.get("commit")))
        gpu = "" if self.machine["gpu"] == "none" else f", {self.machine['gpu']}"
        where = f"{self.machine['processor']}, {self.machine['cores']} cores, {self.machine['memory_gib']} GiB{gpu}"
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items() if number != "-")
        return f"`make bench SECTIONS={self.section}`, {when}, on {where}; commit {commits}; {packages}."
