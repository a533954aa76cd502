"""Faults under the learner: how gradients are gathered, and what the optimizer makes of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from math import inf
from typing import Any
from unittest.mock import patch

import torch

from components.learner.base import Learner
from components.learner.batch import Batch
from components.seeds import derive
from tests.benchmarks.health.faults.base import AroundLearner
from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.base import HeldBack


class Underneath(HeldBack, Generated):
    """While an update is made, something below the learner is another one."""

    part = "learner"
    scopes = ("all",)

    def learner(self, learner: Learner) -> Learner:
        return _Underneath(learner, self)  # type: ignore[return-value]

    @abstractmethod
    def patched(self, learner: Any) -> AbstractContextManager[Any]:
        """What is in force during one update."""


class _Underneath(AroundLearner):
    def __init__(self, inner: Learner, fault: Underneath) -> None:
        super().__init__(inner)
        self._fault = fault

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
        if not self._fault.strength:
            return super().step(batch, seed, norm_limit)
        with self._fault.patched(self.inner):
            return super().step(batch, seed, norm_limit)


def optimizer_of(learner: Any) -> Any:
    return learner.sharding._optimizer


class Unzeroed(Underneath):
    """A share of the gradients before is still there when those of an update are added."""

    sizes = (0.5, 1.0)

    def patched(self, learner: Any) -> AbstractContextManager[Any]:
        return patch.object(learner.sharding, "zero_grad", lambda: self._keep(learner))

    def _keep(self, learner: Any) -> None:
        for parameter in optimizer_of(learner)._parameters.values():
            if parameter.grad is not None:
                parameter.grad.mul_(self.size * self.strength)


class StuckTensors(Underneath):
    """Some tensors get no gradient any more."""

    sizes = (0.5, 0.9)

    def patched(self, learner: Any) -> AbstractContextManager[Any]:
        step, parameters = learner.sharding.step, optimizer_of(learner)._parameters
        stuck = [p for name, p in parameters.items() if derive(self.seed, name) % 100 < 100 * self.size * self.strength]

        def stepped(lr: float, limit: float) -> float:
            for parameter in stuck:
                parameter.grad = None
            return float(step(lr, limit))

        return patch.object(learner.sharding, "step", stepped)


class ClippedAway(Underneath):
    """Gradients are clipped at a tiny part of the configured norm."""

    sizes = (1e3, 1e7)

    def patched(self, learner: Any) -> AbstractContextManager[Any]:
        optimizer = optimizer_of(learner)
        return patch.object(optimizer, "_grad_clip", optimizer._grad_clip / self.size**self.strength)


class SteppedAgain(Underneath):
    """The optimizer makes ``size`` steps with one gradient."""

    sizes = (2, 8)

    def patched(self, learner: Any) -> AbstractContextManager[Any]:
        step, count = learner.sharding.step, 1 + round((self.size - 1) * self.strength)

        def stepped(lr: float, limit: float) -> float:
            norms = [step(lr, limit) for _ in range(count)]
            return float(norms[0])

        return patch.object(learner.sharding, "step", stepped)


class OtherGroup(Underneath):
    """An option of AdamW is another one than was configured."""

    key: str

    @abstractmethod
    def value(self, given: Any) -> Any:
        """What stands in place of what was configured."""

    def patched(self, learner: Any) -> AbstractContextManager[Any]:
        group = optimizer_of(learner)._adamw.param_groups[0]
        return patch.dict(group, {self.key: self.value(group[self.key])})


class SlowMomentum(OtherGroup):
    """The first moment decays much more slowly."""

    key, sizes = "betas", (0.97, 0.999)

    def value(self, given: Any) -> Any:
        return given[0] + (self.size - given[0]) * self.strength, given[1]


class LargeEpsilon(OtherGroup):
    """What is added to the root of the second moment is no longer negligible."""

    part = "settings"
    key, sizes = "eps", (1e-3, 1.0)

    def value(self, given: Any) -> Any:
        return given + self.size * self.strength


class Decaying(OtherGroup):
    """Weights decay, at a rate that suits another optimizer."""

    part = "settings"
    key, sizes = "weight_decay", (20.0, 200.0)

    def value(self, given: Any) -> Any:
        return given + self.size * self.strength


class WornMoments(Underneath):
    """Second moments lose nearly all of their size before each update."""

    sizes = (10.0, 1e4)

    @contextmanager
    def patched(self, learner: Any) -> Iterator[None]:
        for state in optimizer_of(learner)._adamw.state.values():
            state["exp_avg_sq"].div_(self.size**self.strength)
        yield


class CoarseWeights(Underneath):
    """Weights are kept in a coarse format: ``size`` bits of an fp32 number are lost after each update."""

    sizes = (16, 20)

    @contextmanager
    def patched(self, learner: Any) -> Iterator[None]:
        yield
        with torch.no_grad():
            for parameter in optimizer_of(learner)._parameters.values():
                parameter.copy_(coarse(parameter, round(self.size * self.strength)))


def coarse(values: torch.Tensor, bits: int) -> torch.Tensor:
    """fp32 numbers without their last bits, rounded to the nearest."""
    if bits < 1:
        return values
    whole = values.detach().contiguous().view(torch.int32)
    return (((whole + (1 << (bits - 1))) >> bits) << bits).view(torch.float32)


OPTIMIZERS = (
    Unzeroed,
    StuckTensors,
    ClippedAway,
    SteppedAgain,
    SlowMomentum,
    LargeEpsilon,
    Decaying,
    WornMoments,
    CoarseWeights,
)
