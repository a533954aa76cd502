"""What can be repaired of each part of a run, and what has been.

A repair is no knob: it puts a part back to what it should be, and changes nothing about how the policy is trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.config import Settings
from components.config.judgement import Part
from components.types import Change

REDRAW, WITHHOLD, RELOAD, EXCLUDE, RESET = "redraw", "withhold", "reload", "exclude", "reset"
SECOND_JUDGES = "audit.second_judges"
NAMES = (REDRAW, WITHHOLD, RELOAD, EXCLUDE, RESET, SECOND_JUDGES)
RELOADS, RESETS = 2, 2
"""How often weights are handed over again, and settings given again, in a run."""
TRUSTED = 0.95
"""Share of the golden items that the second verifier has to judge as the first did when they were new, before it judges
instead of the first."""


@dataclass(frozen=True)
class Situation:
    """What a response to a step depends on.

    For repairs: the server that is suspected (-1: none), how many sample, the share of golden items that the second
    verifier judges as the first once did (None: not known), and the family whose data are suspected. For a watch: the
    number of the step, the evidence, nats, that held-out accuracy has fallen, whether an update was made or could have
    been (``trains``), and whether weights are numbers and advantages and updates have the right sign (``sound``). For
    knobs: the values ``in_force`` of those that a controller moves. For the cost of a roll-back: the steps so far that
    did not count (``repeated``).
    """

    server: int = -1
    servers: int = 0
    second_agrees: float | None = None
    family: str = ""
    step: int = -1
    fall: float = 0.0
    learned: bool = True
    trains: bool = True
    sound: bool = True
    in_force: Mapping[str, float] = field(default_factory=dict)
    repeated: int = 0


@dataclass
class Repairs:
    """What has been repaired; a roll-back undoes none of it."""

    redrawn: bool = False
    withheld: set[str] = field(default_factory=set)
    excluded: set[int] = field(default_factory=set)
    reloads: int = 0
    resets: int = 0

    def of(self, part: Part | None, settings: Settings, situation: Situation) -> Change | None:
        """The next repair of a part; None where nothing is left to try."""
        for attempt in REPAIRS.get(part, ()) if part is not None else ():
            if (change := attempt(self, settings, situation)) is not None:
                return change
        return None

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        return {**vars(self), "excluded": sorted(self.excluded), "withheld": sorted(self.withheld)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.redrawn, self.excluded = bool(state["redrawn"]), set(state["excluded"])
        self.withheld = set(state["withheld"])
        self.reloads, self.resets = int(state["reloads"]), int(state["resets"])


def redraw(done: Repairs, settings: Settings, situation: Situation) -> Change | None:
    """Prompts come from the second copy of the schedule, and of the split."""
    if done.redrawn:
        return None
    done.redrawn = True
    return Change(REDRAW, "schedule", "its second copy")


def withhold(done: Repairs, settings: Settings, situation: Situation) -> Change | None:
    """A family of prompts is not trained on any more."""
    if not situation.family or situation.family in done.withheld:
        return None
    done.withheld.add(situation.family)
    return Change(WITHHOLD, situation.family, "not trained on")


def reload(done: Repairs, settings: Settings, situation: Situation) -> Change | None:
    """The weights are handed over to the sampler once more."""
    if done.reloads >= RELOADS:
        return None
    done.reloads += 1
    return Change(RELOAD, "weights of the sampler", "handed over again")


def exclude(done: Repairs, settings: Settings, situation: Situation) -> Change | None:
    """A server that differs from the others samples no more."""
    server = situation.server
    if server < 0 or server in done.excluded or situation.servers < 2:
        return None
    done.excluded.add(server)
    return Change(EXCLUDE, f"server {server}", "not used")


def second_judges(done: Repairs, settings: Settings, situation: Situation) -> Change | None:
    """The second verifier judges instead of the first, where it judges what is known as it is known."""
    agrees = situation.second_agrees
    if settings.audit.second is None or settings.audit.reviewed or agrees is None or agrees < TRUSTED:
        return None
    return Change(SECOND_JUDGES, 0, 1)


def reset(done: Repairs, settings: Settings, situation: Situation) -> Change | None:
    """The learner is given its settings again."""
    if done.resets >= RESETS:
        return None
    done.resets += 1
    return Change(RESET, "settings of the learner", "given again")


Attempt = Callable[[Repairs, Settings, Situation], Change | None]

REPAIRS: dict[Part, tuple[Attempt, ...]] = {
    "data": (redraw, withhold),
    "schedule": (redraw,),
    "verifier": (second_judges,),
    "sampler": (exclude, reload),
    "settings": (reset,),
}
"""Part -> what is tried, in this order. A learner can only go back."""
