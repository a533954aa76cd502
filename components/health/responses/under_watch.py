"""Going on with a fault that nothing repairs, as long as held-out accuracy shows no harm.

A run that stops for a fault without consequences is worse than one that goes on. So the run goes on: the rule is still
judged at every step, the run stops and returns to the last healthy checkpoint once held-out accuracy has fallen, and
the gate fails where the rule holds at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.config.judgement import Part
from components.health.monitor import PATIENCE
from components.types import Change, Verdict

STOP = "stop"
UNDER_WATCH = Change(STOP, "at once", "once held-out accuracy has fallen")
MAY_GO_ON = ("data", "schedule", "sampler", "learner", "settings")
"""A broken verifier trains the policy towards what is wrong, and its measurements do not show it."""


@dataclass
class UnderWatch:
    """By part, the verdict for which the run did not stop, and the latest step at which its rule held. A return does
    not end a watch; it ends when the rule has not held for some steps."""

    verdicts: dict[Part, Verdict] = field(default_factory=dict)
    latest: dict[Part, int] = field(default_factory=dict)

    def may(self, part: Part | None, verdict: Verdict, lost: Iterable[str]) -> bool:
        """Whether the run can go on: the part is no measure of what is right, and nothing held-out has been ``lost``.
        Data of which nothing can be learned, for which a rule says stop, will not become better."""
        nothing_to_learn = part == "data" and verdict.level == "stop"
        return part in MAY_GO_ON and not nothing_to_learn and not any(lost)

    def begin(self, part: Part, verdict: Verdict) -> None:
        """Watch a part because of a verdict."""
        self.verdicts[part], self.latest[part] = verdict, verdict.step

    def look(self, step: int, held: Mapping[str, float]) -> None:
        """Note which rules hold at a step; ``held`` says of each for how many steps."""
        for part, verdict in self.verdicts.items():
            if held.get(verdict.rule):
                self.latest[part] = step

    def parts(self, step: int) -> list[Part]:
        """The parts that are watched at a step."""
        return sorted(part for part, latest in self.latest.items() if step - latest < PATIENCE)

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        verdicts = {part: verdict.to_dict() for part, verdict in self.verdicts.items()}
        return {"verdicts": verdicts, "latest": dict(self.latest)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.verdicts = {part: Verdict(**verdict) for part, verdict in state["verdicts"].items()}
        self.latest = {part: int(step) for part, step in state["latest"].items()}
