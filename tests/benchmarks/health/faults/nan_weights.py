"""A weight that is no number.

In the field: a bit flip, a torn checkpoint, an optimizer that divided by nought. It does not go away by itself.
"""

from __future__ import annotations

from math import inf
from typing import ClassVar

import torch

from components.learner.base import Learner
from components.learner.batch import Batch
from tests.benchmarks.health.faults.base import AroundLearner, Fault


class NanWeights(Fault):
    """At the step, before its update, one weight of the learner becomes NaN."""

    late: ClassVar[bool] = True

    def learner(self, learner: Learner) -> Learner:
        return _Struck(learner, self)


class _Struck(AroundLearner):
    def __init__(self, inner: Learner, fault: Fault) -> None:
        super().__init__(inner)
        self._fault = fault

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
        if self._fault.clock.step == self._fault.begins:
            with torch.no_grad():
                next(w for w in self.inner._policy.weights().values() if w.dim() == 2)[0, 0] = float("nan")
        return super().step(batch, seed, norm_limit)
