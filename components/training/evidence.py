"""What a run remembers of its steps to judge later ones by."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.config.judgement import Part
from components.health.falls import Counts, Falls, Forms, counts
from components.health.invariants import Broken
from components.health.monitor import PATIENCE
from components.health.responses import Plan
from components.health.responses.repairs import NAMES
from components.health.sequential import Count, Draws, Signs
from components.health.signals import Jumps
from components.training.golden import Golden
from components.training.usual_gap import UsualGap
from components.types import Group

RECENT = 5
"""Steps whose training answers are compared with held-out ones."""
OF_POLICY = ("jumps", "falls", "forms", "draws", "signs", "usual_gap")
"""What `Evidence` has of the policy that has a state of its own."""


@dataclass
class Evidence:
    """What a run's judgement remembers between steps.

    Of the policy: ``jumps``, ``falls``, ``forms``, ``draws``, ``signs``, ``usual_gap``, ``usual_move`` (how far
    earlier updates moved it) and ``trained`` (right answers of the latest steps); they go back with it. Of the run:
    the ``golden`` items, the invariants that were ``broken``, and the ids of the prompts that the latest step has
    ``drawn``.
    """

    jumps: Jumps = field(default_factory=Jumps)
    falls: Falls = field(default_factory=Falls)
    forms: Forms = field(default_factory=Forms)
    draws: Draws = field(default_factory=Draws)
    signs: Signs = field(default_factory=Signs)
    usual_gap: UsualGap = field(default_factory=UsualGap)
    usual_move: deque[float] = field(default_factory=lambda: deque(maxlen=PATIENCE))
    trained: deque[Counts] = field(default_factory=lambda: deque(maxlen=RECENT))
    golden: Golden = field(default_factory=Golden)
    broken: deque[tuple[int, Part, str]] = field(default_factory=lambda: deque(maxlen=PATIENCE))
    drawn: set[str] = field(default_factory=set)

    def record_draws(self, groups: Sequence[Group]) -> None:
        """Note the prompts of a step, and its answers."""
        self.drawn = {group.prompt.id for group in groups}
        self.trained.append(counts(groups))

    def trained_counts(self) -> Counts:
        """Right answers to the training prompts of the latest steps, by stream."""
        found: dict[str, Count] = {}
        for one in self.trained:
            for name, count in one.items():
                found[name] = found.get(name, Count(0, 0)) + count
        return found

    def unrepaired(self, step: int) -> list[tuple[Part, str]]:
        """Invariants that did not hold in the latest steps, and whose part has not been repaired since."""
        return [(part, text) for at, part, text in self.broken if step - at < PATIENCE]

    def noted(self, step: int, broken: Sequence[Broken], plan: Plan) -> None:
        """Note what did not hold in a step, and what has been repaired. What a roll-back undoes is no cause of anything
        after it."""
        if plan.back_to is not None:
            self.broken.clear()
            return
        repaired = {one.part for one in plan.responses for change in one.changes if change.knob in NAMES}
        kept = [*self.broken, *((step, one.part, one.found) for one in broken)]
        self.broken.clear()
        self.broken.extend(one for one in kept if one[1] not in repaired)

    def state_dict(self) -> dict[str, Any]:
        """Everything a resumed run needs, as JSON values."""
        return {
            **{name: getattr(self, name).state_dict() for name in OF_POLICY},
            "usual_move": list(self.usual_move),
            "trained": [{name: list(count) for name, count in one.items()} for one in self.trained],
            "golden": self.golden.state_dict(),
            "broken": [list(one) for one in self.broken],
            "drawn": sorted(self.drawn),
        }

    def go_back(self, state: Mapping[str, Any]) -> None:
        """What is known of the policy, as it was in an earlier state; what is known of the run stays."""
        for name in OF_POLICY:
            getattr(self, name).load_state_dict(state[name])
        self.usual_move = deque(map(float, state["usual_move"]), maxlen=PATIENCE)
        trained = ({name: Count(*count) for name, count in one.items()} for one in state["trained"])
        self.trained = deque(trained, maxlen=RECENT)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`.

        Raises:
            ValueError: another set of fields.
        """
        if set(state) != set(self.state_dict()):
            raise ValueError(f"what is remembered of a run has {sorted(state)}")
        self.go_back(state)
        self.golden.load_state_dict(state["golden"])
        self.broken = deque(((int(at), part, text) for at, part, text in state["broken"]), maxlen=PATIENCE)
        self.drawn = set(state["drawn"])
