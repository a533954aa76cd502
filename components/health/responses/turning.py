"""The settings of a run as responses have left them: which knobs were turned, and which action of a rule is next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.config import Settings
from components.health.responses.knobs import KNOBS, turn, with_knob
from components.types import Change


@dataclass
class Turning:
    """``settings`` are the present ones; ``actions`` states how many actions of a rule were tried so far; ``in_force``
    has the present values of knobs that a controller moves."""

    started: Settings
    settings: Settings = field(init=False)
    actions: dict[str, int] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)  # knob -> the value that it was given
    in_force: Mapping[str, float] = field(default_factory=dict)

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

    def load(self, actions: Mapping[str, int], changes: Mapping[str, Any]) -> None:
        """Continue from saved ``actions`` and ``changes``."""
        self.actions, self.changes, self.settings = dict(actions), {}, self.started
        for knob, value in changes.items():
            self.set(knob, value)
