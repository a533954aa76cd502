"""The seam between the algorithm of an update and how weights, gradients and optimizer state lie in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from components.config.training import LearnerSettings
from components.device import autocast
from components.learner.batch import Batch
from components.learner.optimizer import ClippedAdamW
from components.learner.ranks import Ranks
from components.learner.scoring import Pass, score
from components.learner.state import State
from components.policy import Policy, TokenStats
from components.policy.lean.model import lean_pass


class Sharding(ABC):
    """A model and its AdamW, whole in one process or spread over ranks.

    Every rank calls the same methods in the same order: most of them are collective. The loss of an update is the *sum*
    of what all ranks give to `backward`.
    """

    device: torch.device
    """Where batches have to be."""
    state: State
    """Weights and moments, to save, copy and check; the same files whatever the sharding."""

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

    def rest(self) -> None:
        """Drop the gradients and keep the moments in host memory until the next step; nothing on a CPU."""
        raise NotImplementedError(f"{type(self).__name__} cannot move its moments to host memory")

    def trace(self) -> dict[str, float]:
        """Signals of what the latest update did to the weights; none where the weights are spread over ranks."""
        return {}

    @abstractmethod
    def whole(self, name: str) -> Tensor:
        """The whole value of a trained parameter, fp32 where it is spread; collective, on every rank."""

    @abstractmethod
    def broken(self) -> int:
        """How many of the trained parameters hold a NaN or an infinity."""

    def refresh(self) -> None:  # noqa: B027 - most read the weights that were loaded
        """Make the forward pass and what watches it agree with weights that were loaded; collective."""

    def load(self, folder: Path) -> None:
        """Continue from what any sharding's ``state`` wrote; `State.check` comes first, on rank 0."""
        self.state.load(folder)
        self.refresh()


ShardingOf = Callable[[Policy, LearnerSettings], Sharding]
"""Makes the sharding of one process; how many ranks there are, and where, is known to it."""


class Spread(Sharding):
    """Weights, moments or both are spread over ranks; weights are gathered parameter by parameter."""

    ranks: Ranks
    parameters: Mapping[str, Parameter]
    """What is trained."""

    def broken(self) -> int:
        flags = torch.tensor([float(not own.isfinite().all()) for own in map(local, self.parameters.values())])
        return int(self.ranks.largest(flags).sum())


def local(parameter: Any) -> Tensor:
    """What this rank holds of a parameter: all of it, its share, or nothing."""
    if hasattr(parameter, "ds_tensor"):
        return parameter.ds_tensor  # type: ignore[no-any-return]
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter.detach()  # type: ignore[no-any-return]


def trained(module: nn.Module) -> list[tuple[str, Parameter]]:
    """Parameters that have a gradient, by name; with an adapter the others are the base."""
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]


class Plain(Sharding):
    """All of it in this process: the policy's own model and `ClippedAdamW`."""

    def __init__(self, policy: Policy, settings: LearnerSettings) -> None:
        self._policy, self._settings = policy, settings
        self.device = next(policy.model.parameters()).device
        self._optimizer = ClippedAdamW(policy.trainable(), settings)
        self.state = self._optimizer.state

    @property
    def packs(self) -> bool:
        with autocast(self._policy.model, self._settings.compute_dtype):
            return lean_pass(self._policy.model) is not None

    def score(self, batch: Batch, how: Pass) -> TokenStats:
        with autocast(self._policy.model, self._settings.compute_dtype):
            return score(self._policy.model, batch, how)

    def zero_grad(self) -> None:
        self._optimizer.zero_grad()

    def backward(self, loss: Tensor, last: bool) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    @property
    def steps(self) -> float | None:
        return self._optimizer.steps

    def step(self, lr: float, limit: float) -> float:
        return self._optimizer.step(lr, limit)

    def rest(self) -> None:
        self._optimizer.rest()

    def trace(self) -> dict[str, float]:
        return self._optimizer.trace()

    def whole(self, name: str) -> Tensor:
        parameter: Tensor = self._policy.model.get_parameter(name)
        return parameter.detach()

    def broken(self) -> int:
        return sum(not bool(parameter.isfinite().all()) for parameter in self._policy.trainable().values())

    def load(self, folder: Path) -> None:
        self._optimizer.load(folder)
