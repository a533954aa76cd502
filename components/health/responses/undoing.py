"""Knobs that were turned while the run went on, and are turned back where that did not help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from components.config import Settings
from components.health.responses.knobs import read
from components.types import Change, Outcome, Response


@dataclass
class Undoing:
    """By the number of a response, its rule and the knob that it turned. A knob that the settings did not have before
    is not turned back: a section of them would have to go. Nor is one that a controller has moved since."""

    turned: dict[int, tuple[str, Change]] = field(default_factory=dict)

    def note(self, response: Response, change: Change) -> None:
        """Remember a knob that was turned."""
        if change.before is not None:
            self.turned[response.number] = response.rule, change

    def due(self, outcomes: Sequence[Outcome], settings: Settings) -> list[tuple[int, str, Change]]:
        """Responses to be taken back, each once: those of no use whose knob still is as they left it."""
        useless = [one.of for one in outcomes if one.useless and one.recovered is False]
        found = [(number, *self.turned.pop(number)) for number in useless if number in self.turned]
        return [(number, rule, change) for number, rule, change in found if read(settings, change.knob) == change.after]

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        return {str(number): [rule, asdict(change)] for number, (rule, change) in self.turned.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.turned = {int(number): (rule, Change(**change)) for number, (rule, change) in state.items()}


def taken_back(own: int, number: int, rule: str, change: Change, step: int) -> Response:
    """The ledger's entry, with a number of its ``own``, for a response that was taken back."""
    return Response(
        own,
        step,
        rule,
        "intervene",
        "intervene",
        f"response {number} did not help: its rule still holds and held-out accuracy has not risen",
        changes=(Change(change.knob, change.after, change.before),),
        did=f"response {number} taken back",
        undoes=number,
    )
