"""The folder that the cells of a section work in.

A cell finds it empty but for what is prepared once for all of them. That, and what a cell that resumes has done, is
used as long as one measurement lasts, over calls that were ended too: it is of the same code, packages and machine. A
file in the folder says of which.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import read_json, write_json
from tests.benchmarks.machine import machine, versions
from tests.benchmarks.measured_code import Code
from tests.benchmarks.section import PREPARED, Scale

STAMP = "measurement.json"


class Work:
    """The folder of one section."""

    def __init__(self, folder: Path, scale: Scale, resumes: bool = False) -> None:
        self.folder, self._scale, self._resumes = folder, scale, resumes

    def begin(self, cell: str, code: Code) -> float:
        """Make it ready for a cell; returns the seconds that the cell has taken before it was ended, if it resumes.

        Raises:
            InputError: The folder holds something that no measurement put there, which is not removed.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        stamp = self._stamp()
        of = {"scale": self._scale, "code": code.digest, "machine": machine(), "versions": versions()}
        goes_on = stamp.get("of") == of
        if stamp.get("of") and not goes_on:
            other = ", ".join(name for name in of if stamp["of"].get(name) != of[name])
            was = stamp.get("commit") or "?"
            print(f"{self.folder} is emptied: it was of another {other} (commit {was})", flush=True)
        if not (goes_on and self._resumes):
            self._empty(PREPARED if goes_on else "")
        spent = stamp.get("spent_s", {}) if goes_on and self._resumes else {}
        write_json(self.folder / STAMP, {"of": of, "commit": code.commit, "spent_s": spent})
        return float(spent.get(cell, 0.0))

    def interrupted(self, cell: str, seconds: float) -> None:
        """A cell was ended after so many seconds, those of earlier calls included."""
        stamp = self._stamp()
        write_json(self.folder / STAMP, {**stamp, "spent_s": {**stamp["spent_s"], cell: seconds}})

    def ended(self) -> None:
        """The measurement is over, or thrown away: the next one starts with an empty folder."""
        if (self.folder / STAMP).exists():
            write_json(self.folder / STAMP, {})

    def _stamp(self) -> dict[str, Any]:
        path = self.folder / STAMP
        if path.exists():
            found: dict[str, Any] = read_json(path, how=f"remove {self.folder}")
            return found
        if any(self.folder.iterdir()):
            what = "the folder is not empty, and no measurement has made it"
            raise InputError(what, where=self.folder, how="remove it, or name another one: --work")
        return {}

    def _empty(self, but: str) -> None:
        for path in self.folder.iterdir():
            if path.name in (but, STAMP):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
