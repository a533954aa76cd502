"""Whether the policy is to blame for what a rule sees, or a part of the run that it is trained or measured by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.config.judgement import RuleSettings
from components.health.monitor import LEVELS, PATIENCE
from components.types import Verdict

MEASURES = ("verifier", "sampler")
"""Parts without which nothing is known of the policy."""


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
