"""Going on with a fault that nothing repairs, as long as held-out accuracy shows no harm.

A run that stops for a fault without consequences is worse than one that goes on. So the run goes on: the rule is still
judged at every step, the run stops and returns to the last healthy checkpoint once held-out accuracy has fallen, and
the gate fails where the rule holds at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from components.config.judgement import Part
from components.types import Change, Verdict

STOP = "stop"
UNDER_WATCH = Change(STOP, "at once", "once held-out accuracy has fallen")
MAY_GO_ON = ("data", "schedule", "sampler", "learner", "settings")
"""A broken verifier trains the policy towards what is wrong, and its measurements do not show it."""


@dataclass
class UnderWatch:
    """``parts`` are those that are broken while the run goes on. A return does not repair them."""

    parts: set[Part] = field(default_factory=set)

    def may(self, part: Part | None, verdict: Verdict, lost: Iterable[str]) -> bool:
        """Whether the run can go on: the part is no measure of what is right, and nothing held-out has been ``lost``.
        Data of which nothing can be learned, for which a rule says stop, will not become better."""
        nothing_to_learn = part == "data" and verdict.level == "stop"
        return part in MAY_GO_ON and not nothing_to_learn and not any(lost)

    def state_dict(self) -> list[str]:
        """Everything a resumed run needs, as JSON values."""
        return sorted(self.parts)
