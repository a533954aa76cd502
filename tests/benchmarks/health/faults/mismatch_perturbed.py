"""A sampler with slightly other weights.

In the field: a quantised or half-updated inference engine. What is sampled, and what is measured on dev, is not the
policy that learns.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from components.rollout import Engine
from components.seeds import derive
from tests.benchmarks.health.faults.base import AroundEngine, Fault

NOISE = 0.3
"""Standard deviation of the noise, in root mean squares of the tensor that it is added to."""


class MismatchPerturbed(Fault):
    """From the step on the sampler's weights are the learner's and a noise that stays the same."""

    late: ClassVar[bool] = True

    def engine(self, engine: Engine) -> Engine:
        return _Perturbed(engine, self)


class _Perturbed(AroundEngine):
    def __init__(self, inner: Engine, fault: Fault) -> None:
        super().__init__(inner)
        self._fault = fault

    def load_weights(self, weights: dict[str, Any]) -> None:
        # Loaded at the end of a step, for the next one.
        later = self._fault.clock.step + 1 >= self._fault.begins
        self.inner.load_weights(perturbed(weights, self._fault.seed) if later else weights)


def perturbed(weights: dict[str, Tensor], seed: int) -> dict[str, Tensor]:
    """The weights with seeded Gaussian noise; the same seed gives the same noise."""
    stream = torch.Generator().manual_seed(derive(seed, "perturbed"))
    return {
        name: w + NOISE * w.square().mean().sqrt() * torch.randn(w.shape, generator=stream).to(w.dtype)
        for name, w in weights.items()
    }
