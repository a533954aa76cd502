"""What is to be done after a step."""

from __future__ import annotations

from dataclasses import dataclass

from components.health.responses.checkpoints import Saved
from components.health.responses.under_watch import UNDER_WATCH
from components.types import Response


@dataclass(frozen=True)
class Plan:
    """Entries for the ledger, and what the run has to carry out."""

    responses: tuple[Response, ...] = ()
    back_to: Saved | None = None
    stopped_by: str | None = None

    @property
    def acts(self) -> bool:
        """Whether anything is done but noting and going on under watch."""
        return any(one.level != "warn" and one.changes != (UNDER_WATCH,) for one in self.responses)
