"""Completions that are not what the policy would have written; those of the dev split too."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from components.rollout import Engine, Sampling
from components.seeds import derive
from components.types import Completion
from tests.benchmarks.health.faults.base import AroundEngine
from tests.benchmarks.health.faults.mismatch_perturbed import perturbed
from tests.benchmarks.health.faults.mismatch_stale import aside
from tests.benchmarks.health.generated.base import Generated

Groups = list[tuple[Completion, ...]]


class Missampled(Generated):
    """``size`` is how much of a completion is touched."""

    part = "sampler"
    scopes = ("all", "replica")

    def engine(self, engine: Engine) -> Engine:
        return _Missampling(engine, self)

    def returned(self, groups: Groups) -> Groups:
        """The completions of all prompts of a call, as they are returned."""
        return [self.missampled(group) if self.touches(place) else group for place, group in enumerate(groups)]

    def missampled(self, group: tuple[Completion, ...]) -> tuple[Completion, ...]:
        """Those of one prompt."""
        return group


class _Missampling(AroundEngine):
    def __init__(self, inner: Engine, fault: Missampled) -> None:
        super().__init__(inner)
        self._fault = fault

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> Groups:
        groups = list(self.inner.generate(prompts, sampling))
        return self._fault.returned(groups) if self._fault.strength else groups


class Cut(Missampled):
    """Completions end too early, and say that they have ended."""

    sizes = (0.2, 0.5)

    def missampled(self, group: tuple[Completion, ...]) -> tuple[Completion, ...]:
        kept = 1 - self.size * self.strength
        return tuple(_first(one, max(1, int(kept * len(one.token_ids)))) for one in group)


def _first(one: Completion, count: int) -> Completion:
    if count >= len(one.token_ids):
        return one
    text = one.text[: int(len(one.text) * count / len(one.token_ids))]
    return replace(one, token_ids=one.token_ids[:count], logprobs=one.logprobs[:count], finish_reason="stop", text=text)


class Repeated(Missampled):
    """A cache answers: the completions of a group are copies of its first."""

    sizes = (0.5, 1.0)

    def missampled(self, group: tuple[Completion, ...]) -> tuple[Completion, ...]:
        copies = round(self.size * self.strength * (len(group) - 1))
        return (*[group[0]] * (copies + 1), *group[copies + 1 :])


class Misreported(Missampled):
    """Log-probabilities that are off, in nats."""

    sizes = (0.05, 0.5)

    def missampled(self, group: tuple[Completion, ...]) -> tuple[Completion, ...]:
        off = self.size * self.strength
        return tuple(replace(one, logprobs=tuple(value - off for value in one.logprobs)) for one in group)


class Swapped(Missampled):
    """Answers of one prompt are returned as those of another."""

    sizes = (0.5, 1.0)

    def returned(self, groups: Groups) -> Groups:
        chosen = [n for n in range(len(groups)) if self.touches(n) and self.hits(self.size, self.clock.step, n)]
        source = dict(zip(chosen, [*chosen[1:], *chosen[:1]], strict=True))
        return [groups[source.get(place, place)] for place in range(len(groups))]


class Weights(Generated):
    """The sampler has other weights than the learner."""

    part = "sampler"
    scopes = ("all",)

    def engine(self, engine: Engine) -> Engine:
        return _Weighted(engine, self)

    @abstractmethod
    def loaded(self, past: deque[dict[str, Any]]) -> dict[str, Any]:
        """The weights that are loaded instead of the newest of those that were handed over."""


class _Weighted(AroundEngine):
    def __init__(self, inner: Engine, fault: Weights) -> None:
        super().__init__(inner)
        self._fault = fault
        self._past: deque[dict[str, Any]] = deque(maxlen=11)

    def load_weights(self, weights: dict[str, Any]) -> None:
        self._past.append(aside(weights))
        self.inner.load_weights(self._fault.loaded(self._past) if self._fault.strength else weights)


class Noisy(Weights):
    """A noise on the weights, as of a coarse format."""

    sizes = (0.1, 0.3)

    def loaded(self, past: deque[dict[str, Any]]) -> dict[str, Any]:
        noisy = perturbed(past[-1], self.seed)
        share = self.size * self.strength / 0.3
        return {name: torch.lerp(weight, noisy[name], share) for name, weight in past[-1].items()}


class Stale(Weights):
    """The weights of some steps before."""

    sizes = (4, 10)

    def loaded(self, past: deque[dict[str, Any]]) -> dict[str, Any]:
        return past[max(0, len(past) - 1 - round(self.size * self.strength))]


class HalfLoaded(Weights):
    """Some tensors are never updated any more."""

    sizes = (0.3, 0.7)

    def loaded(self, past: deque[dict[str, Any]]) -> dict[str, Any]:
        old = {name for name in past[-1] if derive(self.seed, name) % 100 < 100 * self.size}
        return {name: past[0][name] if name in old else weight for name, weight in past[-1].items()}


SAMPLERS = (Cut, Repeated, Misreported, Swapped, Noisy, Stale, HalfLoaded)
