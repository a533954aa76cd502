"""A sampler that is behind.

In the field: asynchronous rollouts, or a weight sync that fails without a word. The policy learns from what an older
one wrote.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from components.rollout import Engine
from tests.benchmarks.health.faults.base import AroundEngine, Fault

BEHIND = 10


class MismatchStale(Fault):
    """From the step on the sampler has the weights of `BEHIND` steps before."""

    late: ClassVar[bool] = True

    def engine(self, engine: Engine) -> Engine:
        return _Stale(engine, self)


def aside(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Copies in a file, which is gone with them: eleven copies of a language model would not fit into memory."""
    with tempfile.NamedTemporaryFile(prefix="trial-weights-") as file:
        torch.save({name: weight.detach() for name, weight in weights.items()}, file.name)
        copies: dict[str, Any] = torch.load(file.name, mmap=True)
    return copies


class _Stale(AroundEngine):
    def __init__(self, inner: Engine, fault: Fault) -> None:
        super().__init__(inner)
        self._fault = fault
        self._past: deque[dict[str, Any]] = deque(maxlen=BEHIND + 1)

    def load_weights(self, weights: dict[str, Any]) -> None:
        self._past.append(aside(weights))
        later = self._fault.clock.step + 1 >= self._fault.begins
        self.inner.load_weights(self._past[0] if later else weights)
