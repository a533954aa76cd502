"""Numbers that are none.

In the field: an overflow in a reduced precision, a broken kernel on one node. It lasts a few steps and is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import ClassVar

import torch

from components.learner.base import Learner
from components.learner.batch import Batch
from components.rollout import Engine, Sampling
from components.types import Completion
from tests.benchmarks.health.faults.base import AroundEngine, AroundLearner, Fault

STEPS = 3


class NanBurst(Fault):
    """For three steps the sampler reports no log-probabilities; in the next three the gradient is NaN."""

    late: ClassVar[bool] = True

    def engine(self, engine: Engine) -> Engine:
        return _Silent(engine, self)

    def learner(self, learner: Learner) -> Learner:
        return _Overflowing(learner, self)

    def within(self, first: int) -> bool:
        """Is this one of the `STEPS` steps from the ``first`` one after the beginning?"""
        return 0 <= self.clock.step - self.begins - first < STEPS


class _Silent(AroundEngine):
    def __init__(self, inner: Engine, fault: NanBurst) -> None:
        super().__init__(inner)
        self._fault = fault

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        groups = super().generate(prompts, sampling)
        if not self._fault.within(0):
            return groups
        return [tuple(replace(c, logprobs=(float("nan"),) * len(c.token_ids)) for c in group) for group in groups]


class _Overflowing(AroundLearner):
    def __init__(self, inner: Learner, fault: NanBurst) -> None:
        super().__init__(inner)
        self._fault = fault

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
        if self._fault.within(STEPS) and batch.advantages is not None:
            batch = replace(batch, advantages=torch.full_like(batch.advantages, float("nan")))
        return super().step(batch, seed, norm_limit)
