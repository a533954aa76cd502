"""Whether the policy is to blame for what a rule sees, or a part of the run that it is trained or measured by; and
going on with a fault that nothing repairs, as long as held-out accuracy shows no harm.

A run that stops for a fault without consequences is worse than one that goes on. So the run goes on: the rule is still
judged at every step; the run stops, with the last healthy checkpoint from before the watch, once held-out accuracy
falls, a rule on the policy fires, updates have the wrong sign, or nothing is learned any more; and the gate fails where
the fault lasts or returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.config.judgement import Part, RuleSettings
from components.health.monitor import LEVELS, PATIENCE
from components.types import Change, Verdict

UNDER_WATCH = Change("stop", "at once", "once the policy is harmed")
MAY_GO_ON = ("data", "schedule", "sampler", "learner", "settings")
"""A broken verifier trains the policy towards what is wrong, and its measurements do not show it."""
HARM = 4.6
"""Nats of evidence that held-out accuracy has fallen, above which a known fault has done it: without any harm they are
reached once in a hundred measurements, or less often."""
IDLE = 10
"""Steps in a row of which nothing is learned, after which to go on is of no use."""
TORN = "batch_torn"
MEASURES = ("verifier", "sampler")
"""Parts without which nothing is known of the policy."""


@dataclass
class UnderWatch:
    """By part, the verdict for which the run did not stop, and the latest step at which its rule held. A return does
    not end a watch; it ends when the rule has not held for some steps. ``idle`` counts steps of which nothing was
    learned."""

    verdicts: dict[Part, Verdict] = field(default_factory=dict)
    latest: dict[Part, int] = field(default_factory=dict)
    idle: int = 0

    def may(self, part: Part | None, verdict: Verdict, fall: float) -> bool:
        """Whether the run can go on: the part is no measure of what is right, and held-out accuracy has not fallen
        (``fall``, nats). Data of which nothing can be learned, for which a rule says stop, will not become better."""
        nothing_to_learn = part == "data" and verdict.level == "stop"
        return part in MAY_GO_ON and not nothing_to_learn and fall < HARM

    def begin(self, part: Part, verdict: Verdict) -> None:
        """Watch a part because of a verdict."""
        self.verdicts[part], self.latest[part] = verdict, verdict.step

    def look(self, step: int, held: Mapping[str, float], *, learned: bool) -> None:
        """Take a step in: ``held`` states for each rule for how many steps it has held, ``learned`` whether an update
        was made."""
        for part in self.parts(step):
            if held.get(self.verdicts[part].rule):
                self.latest[part] = step
        kept = self.parts(step)
        self.verdicts = {part: self.verdicts[part] for part in kept}
        self.latest = {part: self.latest[part] for part in kept}
        self.idle = self.idle + 1 if kept and not learned else 0

    def parts(self, step: int) -> list[Part]:
        """The parts that are watched at a step, the one first whose evidence began first."""
        watched = [part for part, latest in self.latest.items() if step - latest < PATIENCE]
        return sorted(watched, key=lambda part: (self.verdicts[part].clean, part))

    def harm(self, fall: float, *, sound: bool) -> str:
        """What shows that the run must not go on; empty where nothing does."""
        if not sound:
            return "advantages or updates have the wrong sign, or weights are no numbers"
        if fall >= HARM:
            return f"held-out accuracy has fallen under watch ({fall:.1f} nats)"
        return f"nothing was learned in {self.idle} steps under watch" if self.idle >= IDLE else ""

    def torn(self, step: int) -> bool:
        """Whether the watch is for batches that come torn to the learner, which has to take them."""
        return any(TORN in self.verdicts[part].evidence for part in self.parts(step))

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        verdicts = {part: verdict.to_dict() for part, verdict in self.verdicts.items()}
        return {"verdicts": verdicts, "latest": dict(self.latest), "idle": self.idle}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.verdicts = {part: Verdict(**verdict) for part, verdict in state["verdicts"].items()}
        self.latest = {part: int(step) for part, step in state["latest"].items()}
        self.idle = int(state["idle"])


@dataclass
class FaultAttribution:
    """``targets``: by rule, the step of the checkpoint that it went back to. ``unrepaired``: by rule on a part that
    measures, the step of the latest verdict about which nothing could be done."""

    rules: Mapping[str, RuleSettings]
    targets: dict[str, int] = field(default_factory=dict)
    unrepaired: dict[str, int] = field(default_factory=dict)

    def urgency(self, verdict: Verdict) -> tuple[int, int]:
        """The gravest verdict comes first; but what measures the policy is repaired before the policy is taken back."""
        part = self.rules[verdict.rule].part
        repair = 1 if part in MEASURES and verdict.level == "intervene" else 0
        urgent = {"stop": 3, "rollback": 2 if part != "policy" else 0}.get(verdict.level, repair)
        return urgent, LEVELS.index(verdict.level)

    def noted(self, verdict: Verdict) -> None:
        """Nothing was done about a verdict."""
        if verdict.level != "warn" and self.rules[verdict.rule].part in MEASURES:
            self.unrepaired[verdict.rule] = verdict.step

    def broken_measure(self, verdict: Verdict) -> str:
        """The rule that shows the policy to be measured by a broken part, of several the first by name; empty where
        none does, and for verdicts on anything but the policy."""
        if self.rules[verdict.rule].part != "policy":
            return ""
        return min((rule for rule, step in self.unrepaired.items() if verdict.step - step < PATIENCE), default="")

    def clean(self, verdict: Verdict) -> int:
        """The step that a checkpoint has to be made by. Where the policy is not to blame, one that a rule went back to
        before is as good as it was then, though what is broken shows in its first step, too."""
        if self.rules[verdict.rule].part in (None, "policy"):
            return verdict.clean
        return max(verdict.clean, self.targets.get(verdict.rule, -1))

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        return {"targets": dict(self.targets), "unrepaired": dict(self.unrepaired)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self.targets, self.unrepaired = dict(state["targets"]), dict(state["unrepaired"])
