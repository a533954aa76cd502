"""What has been said of a live log, in a small file: a restart says nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from components.errors import InputError
from components.files import read_json, write_json
from components.types import Verdict


@dataclass
class Said:
    """The last step that was reported, and the rules that have fired."""

    until: int = -1
    fired: list[str] = field(default_factory=list)

    def add(self, step: int, verdicts: Sequence[Verdict]) -> None:
        """One more step was reported."""
        self.until = step
        self.fired = sorted({*self.fired, *(verdict.rule for verdict in verdicts)})

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        write_json(path, {"until": self.until, "spoken": self.fired})

    @classmethod
    def load(cls, path: Path) -> Said:
        """What an earlier process has said; nothing where there is no such file.

        Raises:
            InputError: the file is no such state.
        """
        how = "remove it: then everything in the log is said again"
        if not path.exists():
            return cls()
        found = read_json(path, how=how)
        if (
            not isinstance(found, dict)
            or set(found) != {"until", "spoken"}
            or type(found["until"]) is not int
            or not isinstance(found["spoken"], list)
        ):
            raise InputError("not the state of a watch", where=path, how=how)
        return cls(found["until"], [str(rule) for rule in found["spoken"]])
