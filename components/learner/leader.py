"""The learner of rank 0, as the loop sees it: what it does, all ranks do together."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic

from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.errors import RankLost
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.follower import CLOSE, START, R, Start, carry_out, start
from components.learner.group import Group
from components.learner.state import read_weights
from components.learner.torch_learner import WEIGHTS, TorchLearner
from components.objectives import Coefficients
from components.policy import Policy
from components.policy.lora import AdaptedPolicy
from components.working import working


class Leading(Generic[R]):
    """Gives every command to the ranks that follow, and carries it out with them.

    Args:
        policy: where the ranks begin; it stays as it is, and is the reference, until `update_policy` or `save_policy`.
        begin: what they build.

    Raises:
        RankLost, InputError: from every method, as `Group.collective` says. Nothing can be learned afterwards.
    """

    def __init__(self, policy: Policy, begin: Start[R], group: Group) -> None:
        self._policy, self._group, self._broken = policy, group, False
        with working("starting the learner ranks"):
            self._own: R = self._together(START, (begin,), lambda: start(begin, group, policy))

    def _learned(self) -> dict[str, Tensor]:
        """What the ranks have learned, in host memory, in the precision of the policy."""
        dtypes = {name: parameter.dtype for name, parameter in self._policy.trainable().items()}
        found: dict[str, Tensor] = self._call("learned")
        return {name: value.detach().to("cpu", dtypes[name], copy=True) for name, value in found.items()}

    def save(self, directory: Path) -> None:
        """Write the state of all ranks into an empty folder, bit-exact."""
        self._call("save", directory)

    def snapshot(self, directory: Path) -> Callable[[], None]:
        """Copy what `save` would write now; the call that is returned writes it, whatever has changed meanwhile."""
        write: Callable[[], None] = self._call("snapshot", directory)

        def together() -> None:
            try:
                with self._group.collective("write a checkpoint"):
                    write()
            except RankLost:
                self._broken = True
                raise

        return together

    def load(self, directory: Path) -> None:
        """Continue exactly where `save` was called. Raises ValueError for another model's state."""
        self._own.check(directory)
        self._call("load", directory)

    def update_policy(self) -> None:
        """Give the policy of rank 0 what the ranks have learned."""
        self._policy.load_trainable(self._learned())

    def when_asked_to_stop(self, tell: Callable[[], None]) -> None:
        """See `Learner.when_asked_to_stop`."""
        self._group.when_asked_to_stop(tell)

    def close(self) -> None:
        """End the ranks and let go of the connections."""
        try:
            if not self._broken:
                self._together(CLOSE, (), self._own.sharding.state.close)
        finally:
            self._broken = True
            self._group.leave()

    def _call(self, name: str, *arguments: Any) -> Any:
        with working(f"learner ranks: {name}"):
            return self._together(name, arguments, lambda: carry_out(self._own, name, arguments))

    def _together(self, name: str, arguments: tuple[Any, ...], own: Callable[[], Any]) -> Any:
        try:
            with self._group.collective(name):
                self._group.send((name, *arguments))
                return own()
        except BaseException as error:
            if not (name == "save" and isinstance(error, OSError)):  # of which every rank has learned
                self._broken = True  # the others are in the middle of something
            raise


class Leader(Leading[TorchLearner], Learner):
    """Rank 0 of the learner of stage `train`, as the loop sees it."""

    @property
    def coefficients(self) -> Coefficients:
        return self._own.coefficients

    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        self._call("configure", settings, objective)

    def logprobs(self, batch: Batch) -> Tensor:
        found: Tensor = self._call("logprobs", batch)
        return found

    def step(self, batch: Batch, seed: int, norm_limit: float = math.inf) -> dict[str, float]:
        signals: dict[str, float] = self._call("step", batch, seed, norm_limit)
        return signals

    def reference(self) -> Policy:
        return self._policy.reference() if isinstance(self._policy, AdaptedPolicy) else self._policy

    def weights(self) -> dict[str, Tensor]:
        return self._policy.weights_with(self._learned())

    def weights_at(self, directory: Path) -> dict[str, Tensor]:
        return self._policy.weights_with(read_weights(directory / WEIGHTS))

    def save_policy(self, directory: Path) -> None:
        self.update_policy()
        self._policy.save(directory)
