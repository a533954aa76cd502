"""The settings of a run as responses have left them: which knobs were turned, which action of a rule is next, and which
knobs are to be turned back because it did not help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from components.config import Settings
from components.health.responses.knobs import KNOBS, read, turn, with_knob
from components.types import Change, Outcome, Response


@dataclass
class Turning:
    """``settings`` are the present ones; ``actions`` states how many actions of a rule were tried so far; ``in_force``
    has the present values of knobs that a controller moves. ``turned`` has, by the number of a response that let the
    run go on, its rule and the knob that it turned. A knob that the settings did not have before is not turned back: a
    section of them would have to go. Nor is one that a controller moves, or has moved since.
    """

    started: Settings
    settings: Settings = field(init=False)
    actions: dict[str, int] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)  # knob -> the value that it was given
    in_force: Mapping[str, float] = field(default_factory=dict)
    turned: dict[int, tuple[str, Change]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = self.started

    def next(self, rule: str) -> tuple[Change | None, str]:
        """Change the next knob of a rule that can be changed; the last one is turned again. The text has what could not
        be, and what moves the knob from there on."""
        actions = [action for action in self.started.health.rules[rule].action if action.knob in KNOBS]
        notes = []
        first = min(self.actions.get(rule, 0), max(0, len(actions) - 1))
        for place in range(first, len(actions)):
            self.actions[rule] = place + 1
            found = turn(actions[place], self.settings, self.started, self.in_force)
            if isinstance(found, str):
                notes.append(found)
                continue
            self.settings, change = found
            self.changes[change.knob] = change.after
            if change.knob in self.in_force:
                notes.append(f"{change.knob.rpartition('.')[0]}.target moves it on from there")
            return change, "; ".join(notes)
        return None, "; ".join(notes)

    def set(self, knob: str, value: Any) -> None:
        """Give a knob a value."""
        self.settings = with_knob(self.settings, knob, value)
        self.changes[knob] = value

    def note(self, response: Response, change: Change) -> None:
        """Remember a knob that was turned while the run went on."""
        if change.before is not None and change.knob not in self.in_force:
            self.turned[response.number] = response.rule, change

    def due(self, outcomes: Sequence[Outcome]) -> list[tuple[int, str, Change]]:
        """Responses to be taken back, each once: those of no use whose knob still is as they left it."""
        useless = [one.of for one in outcomes if one.useless and one.recovered is False]
        found = [(number, *self.turned.pop(number)) for number in useless if number in self.turned]
        return [one for one in found if read(self.settings, one[2].knob) == one[2].after]

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        turned = {str(number): [rule, asdict(change)] for number, (rule, change) in self.turned.items()}
        return {"actions": dict(self.actions), "changes": dict(self.changes), "undoing": turned}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.actions, self.changes, self.settings = dict(state["actions"]), {}, self.started
        for knob, value in state["changes"].items():
            self.set(knob, value)
        self.turned = {int(number): (rule, Change(**change)) for number, (rule, change) in state["undoing"].items()}
