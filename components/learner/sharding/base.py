"""The seam between the algorithm of an update and how weights, gradients and optimizer state lie in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from components.config.training import LearnerSettings
from components.learner.batch import Batch
from components.learner.scoring_module import Pass
from components.policy import Policy, TokenStats


class Sharding(ABC):
    """A model and its AdamW, whole in one process or spread over ranks.

    Every rank calls the same methods in the same order: most of them are collective. The loss of an update is the *sum*
    of what all ranks give to `backward`.
    """

    device: torch.device
    """Where batches have to be."""

    @property
    def packs(self) -> bool:
        """Whether a pass over plain rows computes no padding, and the prompt of a group once."""
        return False

    @abstractmethod
    def score(self, batch: Batch, how: Pass) -> TokenStats:
        """One forward pass over a micro-batch, with gradient where that is enabled."""

    @abstractmethod
    def zero_grad(self) -> None:
        """Forget the gradients of the update before."""

    @abstractmethod
    def backward(self, loss: Tensor, last: bool) -> None:
        """Add the gradient of ``loss``; ``last`` is that of the update's last micro-batch."""

    @property
    @abstractmethod
    def steps(self) -> float | None:
        """Updates that AdamW has made; None before the first."""

    @abstractmethod
    def step(self, lr: float, limit: float) -> float:
        """One clipped AdamW update at this learning rate; returns the gradient's norm before clipping.

        Where the norm is not finite, or above ``limit``, weights, moments and counters stay as they are.
        """

    def trace(self) -> dict[str, float]:
        """Signals of what the latest update did to the weights; none where the weights are spread over ranks."""
        return {}

    @abstractmethod
    def whole(self, name: str) -> Tensor:
        """The whole value of a parameter of the model, trained (fp32 where it is spread) or frozen."""

    @abstractmethod
    def broken(self) -> int:
        """How many of the trained parameters hold a NaN or an infinity."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write whole weights and moments as one safetensors file, bit-exact; the same layout whatever the sharding."""

    @abstractmethod
    def snapshot(self, path: Path) -> Callable[[], None]:
        """Copy what `save` would write now; the call that is returned writes it, whatever has changed meanwhile."""

    @abstractmethod
    def check(self, path: Path) -> None:
        """Raise ValueError for a file of another model; on one rank, before `load` on all."""

    @abstractmethod
    def load(self, path: Path) -> None:
        """Read what any sharding's `save` wrote. Of several ranks rank 0 reads; the others get their share of it."""


ShardingOf = Callable[[Policy, LearnerSettings], Sharding]
"""Makes the sharding of one process; how many ranks there are, and where, is known to it."""
