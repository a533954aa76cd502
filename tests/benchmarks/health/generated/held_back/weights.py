"""Hand-overs of weights that fail, or change what they hand over."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import torch

from components.rollout import Engine, Sampling
from tests.benchmarks.health.faults.base import AroundEngine
from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.base import HeldBack
from tests.benchmarks.health.generated.samplers import Groups, Weights

State = dict[str, Any]


class Missed(HeldBack, Weights):
    """One hand-over in ``size`` arrives."""

    sizes = (4, 40)
    _held: State | None = None
    _waited = 0

    def loaded(self, past: deque[State]) -> State:
        self._waited += 1
        if self._held is None or self._waited >= 1 + (self.size - 1) * self.strength:
            self._held, self._waited = past[-1], 0
        return self._held


class Quantised(HeldBack, Weights):
    """Weights in steps of a share of the largest one of their tensor."""

    sizes = (0.02, 0.1, 0.3)

    def loaded(self, past: deque[State]) -> State:
        return {name: self._rounded(weight) for name, weight in past[-1].items()}

    def _rounded(self, weight: torch.Tensor) -> torch.Tensor:
        step = weight.abs().max() * self.size * self.strength
        return torch.where(step > 0, (weight / step).round() * step, weight)


class Rescaled(HeldBack, Weights):
    """What was learned in the steps before is added ``size`` times, as by an adapter with a wrong scale."""

    sizes = (3.0, 10.0)

    def loaded(self, past: deque[State]) -> State:
        factor = 1 + (self.size - 1) * self.strength
        return {name: past[0][name] + factor * (weight - past[0][name]) for name, weight in past[-1].items()}


class Unadapted(HeldBack, Weights):
    """Only a share of what was learned in the steps before is there."""

    sizes = (0.5, 1.0)

    def loaded(self, past: deque[State]) -> State:
        return {name: torch.lerp(weight, past[0][name], self.size * self.strength) for name, weight in past[-1].items()}


class LeftBehind(HeldBack, Generated):
    """One of two replicas gets one hand-over in ``size``."""

    part = "sampler"
    sizes = (4, 1000)
    scopes = ("replica",)

    def engine(self, engine: Engine) -> Engine:
        return _Replicas(engine, self)  # type: ignore[return-value]


class _Replicas(AroundEngine):
    def __init__(self, inner: Engine, fault: LeftBehind) -> None:
        super().__init__(inner)
        self._fault, self._waited = fault, 0
        self._new: State = {}
        self._old: State = {}

    def load_weights(self, weights: State) -> None:
        self._new = {name: weight.clone() for name, weight in weights.items()}
        self._waited += 1
        if not self._fault.strength or self._waited >= 1 + (self._fault.size - 1) * self._fault.strength:
            self._old, self._waited = self._new, 0
        self.inner.load_weights(weights)

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Groups:
        groups = super().generate(prompts, sampling)
        if not self._old or self._old is self._new:  # nothing is handed over before the first update
            return groups
        self.inner.load_weights(self._old)
        places = [place for place in range(len(prompts)) if self._fault.touches(place)]
        others = self.inner.generate([prompts[place] for place in places], sampling)
        self.inner.load_weights(self._new)
        for place, group in zip(places, others, strict=True):
            groups[place] = group
        return groups


WEIGHTS = (Missed, Quantised, Rescaled, Unadapted, LeftBehind)
