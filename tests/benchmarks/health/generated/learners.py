"""Updates that are not what the batch asks for, and settings that are not what was configured."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import torch

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.learner.base import Learner
from components.learner.batch import Batch
from components.seeds import derive
from tests.benchmarks.health.faults.base import AroundLearner
from tests.benchmarks.health.generated.base import Generated


class Mislearned(Generated):
    """``size`` says how far an update is off."""

    part = "learner"
    scopes = ("all", "replica")

    def learner(self, learner: Learner) -> Learner:
        return _Mislearning(learner, self)

    def batch(self, batch: Batch) -> Batch:
        """The batch that is learned from."""
        return batch

    def before(self, learner: _Mislearning) -> None:
        """What is done to the learner before its update."""

    def after(self, signals: dict[str, float]) -> dict[str, float]:
        """The signals that are returned."""
        return signals


class _Mislearning(AroundLearner):
    def __init__(self, inner: Learner, fault: Mislearned) -> None:
        super().__init__(inner)
        self._fault = fault
        self.given: tuple[LearnerSettings, ObjectiveSettings] | None = None

    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        self.given = settings, objective
        self.inner.configure(settings, objective)

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
        if not self._fault.strength:
            return super().step(batch, seed, norm_limit)
        self._fault.before(self)
        return self._fault.after(super().step(self._fault.batch(batch), seed, norm_limit))


def _rows(fault: Mislearned, batch: Batch) -> Any:
    """``[B, 1]`` bool: the rows that are touched."""
    return torch.tensor([fault.touches(place) for place in range(len(batch))])[:, None]


class Reversed(Mislearned):
    """Advantages have the wrong sign, in a share of the rows."""

    sizes = (0.5, 1.0)

    def batch(self, batch: Batch) -> Batch:
        hit = torch.tensor([self.hits(self.size, self.clock.step, row) for row in range(len(batch))])[:, None]
        wrong = hit & _rows(self, batch)
        return replace(batch, advantages=torch.where(wrong, -batch.advantages, batch.advantages))  # type: ignore[operator,type-var]


class Shuffled(Mislearned):
    """Advantages belong to other rows."""

    sizes = (1.0,)

    def batch(self, batch: Batch) -> Batch:
        order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(derive(self.seed, self.clock.step)))
        values = batch.advantages[order, :1] * batch.response_mask  # type: ignore[index]
        return replace(batch, advantages=torch.where(_rows(self, batch), values, batch.advantages))  # type: ignore[arg-type]


class Scaled(Mislearned):
    """Advantages are many times what they should be."""

    sizes = (10.0, 1000.0)

    def batch(self, batch: Batch) -> Batch:
        factor = torch.where(_rows(self, batch), 1 + (self.size - 1) * self.strength, 1.0)
        return replace(batch, advantages=batch.advantages * factor)  # type: ignore[operator]


class Forgetful(Mislearned):
    """The optimizer's moments are lost."""

    sizes = (1.0,)
    scopes = ("all",)

    def before(self, learner: _Mislearning) -> None:
        learner.inner.sharding._optimizer._adamw.state.clear()


class Jolted(Mislearned):
    """Noise on the weights, of a share of their size."""

    sizes = (0.02, 0.1)
    scopes = ("all",)

    def before(self, learner: _Mislearning) -> None:
        stream = torch.Generator().manual_seed(derive(self.seed, self.clock.step))
        with torch.no_grad():
            for weight in learner.inner._policy.weights().values():
                noise = torch.randn(weight.shape, generator=stream)
                weight += self.size * self.strength * weight.square().mean().sqrt() * noise


class Rate(Mislearned):
    """Another learning rate than was configured."""

    part = "settings"
    sizes = (4.0, 16.0)
    scopes = ("all",)

    def before(self, learner: _Mislearning) -> None:
        if learner.given is not None:
            settings, objective = learner.given
            changed = settings.model_copy(update={"lr": settings.lr * self.size * self.strength})
            learner.inner.configure(changed, objective)


class Unclipped(Mislearned):
    """Gradients are clipped at many times the configured norm, and advantages are large."""

    sizes = (100.0,)
    scopes = ("all",)

    def before(self, learner: _Mislearning) -> None:
        learner.inner.sharding._optimizer._grad_clip *= self.size

    def batch(self, batch: Batch) -> Batch:
        return replace(batch, advantages=5 * batch.advantages)  # type: ignore[operator]


class Idle(Mislearned):
    """Nothing is learned from the batch."""

    sizes = (1.0,)

    def batch(self, batch: Batch) -> Batch:
        return replace(batch, advantages=torch.where(_rows(self, batch), 0.0, batch.advantages))  # type: ignore[arg-type]


LEARNERS = (Reversed, Shuffled, Scaled, Forgetful, Jolted, Rate, Unclipped, Idle)
