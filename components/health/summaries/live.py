"""The ledger of a run that goes on: read as it is written, and no more of it kept than the live line shows."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from components.files import os_errors
from components.health.responses.ledger import Ledger
from components.health.summaries.line import SHOWN
from components.types import Outcome, Response, Verdict

_ENTRY: TypeAdapter[Response | Outcome] = TypeAdapter(Response | Outcome)


class LiveLedger:
    """Takes the same time and memory in every step, however long the run.

    Args:
        path: only appended to while this object lives. What it holds at first is taken in too, so that a resumed run
            shows the entries from before, too.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self.ledger = Ledger()
        """The latest response that changed something, all of the last `SHOWN` steps, and their outcomes."""

    def update(self, step: int) -> None:
        """Take in what was entered until this ``step``.

        Raises:
            InputError: the file cannot be read.
        """
        new = self._read()
        responses = (*self.ledger.responses, *(entry for entry in new if isinstance(entry, Response)))
        outcomes = (*self.ledger.outcomes, *(entry for entry in new if isinstance(entry, Outcome)))
        acts = [one.number for one in responses if one.level != "warn"]
        kept = tuple(one for one in responses if step - one.step < SHOWN or one.number in acts[-1:])
        numbers = {one.number for one in kept}
        self.ledger = Ledger(kept, tuple(one for one in outcomes if one.of in numbers))

    @property
    def verdicts(self) -> list[Verdict]:
        """What the rules said in the last steps: every verdict has its entry, even where nothing was done."""
        return [Verdict(one.rule, one.asked, one.step, one.reason) for one in self.ledger.responses]

    def _read(self) -> list[Response | Outcome]:
        if not self._path.exists():
            return []
        with os_errors("read", self._path), self._path.open("rb") as file:
            file.seek(self._offset)
            lines = file.readlines()
            self._offset = file.tell()
        return [_ENTRY.validate_json(line) for line in lines]
