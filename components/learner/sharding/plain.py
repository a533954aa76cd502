"""All of it in this process."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from components.config.training import LearnerSettings
from components.device import autocast
from components.learner.batch import Batch
from components.learner.optimizer import ClippedAdamW
from components.learner.scoring import Pass, score
from components.learner.sharding.base import Sharding
from components.policy import Policy, TokenStats
from components.policy.lean.model import lean_pass


class Plain(Sharding):
    """The policy's own model and `ClippedAdamW`."""

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
