"""What a run remembers of its steps to judge later ones by."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import torch

from components.config import Settings
from components.config.judgement import Part
from components.config.rollout import TorchEngine
from components.config.servers import VllmEngine
from components.device import computes_in
from components.health.falls import Counts, Falls, Forms, counts
from components.health.invariants import Broken
from components.health.monitor import PATIENCE
from components.health.responses import Plan
from components.health.responses.repairs import NAMES
from components.health.sequential import Count, Draws, Signs
from components.health.signals import Jumps
from components.training.golden import Golden
from components.types import Group

FIRST = 4
"""Number of earlier steps that define what is usual."""
ROUNDING = 1e-9
"""Nats a token (k3) that rounding in single precision makes at most."""
TIMES, LEAST = 20.0, 1e-4
"""A gap is unusual from so many times the usual one on, and never below the second, nats a token (k3)."""
FORMATS: Mapping[str, float] = {
    "float32": 1e-3,
    "float16": 1e-3,
    "bfloat16": 1e-2,
    "fp8_e4m3": 0.15,
    "fp8_e5m2": 0.15,
    "int8": 0.15,
    "int4": 0.7,
}
"""Nats a token (k3) that a number format explains at most where it lasts for several steps. float32: NeMo RL's rule of
thumb; the others: three times the largest that lasted for five steps on SmolLM2-135M-Instruct (docs/sampler-gap.md)."""
RECENT = 5
"""Steps whose training answers are compared with held-out ones."""
OF_POLICY = ("jumps", "falls", "forms", "draws", "signs", "usual_gap")
"""What `Evidence` has of the policy that has a state of its own."""


def explained(settings: Settings, device: torch.device) -> float:
    """Nats a token (k3) that the coarsest number format of sampler and learner explains, on the policy's device."""
    learner = str(computes_in(settings.learner.compute_dtype, device)).removeprefix("torch.")
    return max(FORMATS.get(name, 0.0) for name in (learner, *_sampled_in(settings, device)))


def _sampled_in(settings: Settings, device: torch.device) -> tuple[str, ...]:
    """The number formats of the sampler: of its weights, and of a server's cache."""
    engine, own = settings.rollout.engine, settings.policy.dtype
    if isinstance(engine, TorchEngine):
        half = computes_in("auto", device) == torch.bfloat16
        named = {"policy": own, "auto": "bfloat16" if half else own}
        return (named.get(engine.precision, engine.precision),)
    weights = own if engine.dtype == "policy" else engine.dtype
    return (weights, engine.kv_cache_dtype) if isinstance(engine, VllmEngine) else (weights,)


class UsualGap:
    """``mismatch_k3`` of the first steps, and ``explained``: what the number formats explain (nats a token)."""

    def __init__(self, explained: float = FORMATS["float32"]) -> None:
        self._explained = explained
        self._first: list[float] = []

    def observe(self, signals: Mapping[str, float]) -> dict[str, float]:
        """Of a step that has measured the gap: ``mismatch_explained``, and once the first steps are over
        ``mismatch_times``, the gap as a multiple of what is usual at most."""
        gap = signals.get("mismatch_k3")
        if gap is None:
            return {}
        found = {"mismatch_explained": self._explained}
        if len(self._first) < FIRST:
            self._first.append(gap)
            return found
        return found | {"mismatch_times": gap / self.limit}

    @property
    def exact(self) -> bool:
        """Whether sampler and learner compute the same log-probabilities, but for rounding."""
        return bool(self._first) and max(self._first) < ROUNDING

    @property
    def limit(self) -> float:
        """Nats a token (k3) that are usual at most."""
        return max(LEAST, TIMES * fmean(self._first)) if self._first else LEAST

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"first": list(self._first)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._first = list(map(float, state["first"]))


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
