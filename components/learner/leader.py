"""The learner of rank 0, as the loop sees it: what it does, all ranks do together."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
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
from components.learner.state import StoredWeights
from components.learner.torch_learner import WEIGHTS, TorchLearner
from components.learner.weights import Gather, Gathered
from components.objectives.controllers import Coefficients
from components.policy import Policy
from components.policy.lora import FOLDER, AdaptedPolicy, Initial
from components.policy.weights import Superseded, Weights
from components.policy.writing import write_policy
from components.working import working


class Leading(Generic[R]):
    """Gives every command to the ranks that follow, and carries it out with them; one at a time, whatever threads they
    come from.

    Args:
        policy: names, shapes, tokenizer and adapter; an `outline` does.
        begin: what the ranks build.
        weights: what they begin with, by the names that the policy has for them; None: its own values.

    Raises:
        RankLost, InputError: from every method, as `Group.collective` says. Nothing can be learned afterwards.
    """

    def __init__(
        self, policy: Policy, begin: Start[R], group: Group, weights: Mapping[str, Tensor] | None = None
    ) -> None:
        self._policy, self._group, self._broken = policy, group, ""
        self._one, self._changes = threading.RLock(), 0
        self._begun = state = Initial(policy, weights)
        with working("starting the learner ranks"):
            self._own: R = self._together(START, (begin,), lambda: start(begin, group, state))

    def _gathered(self) -> Gathered:
        """What the ranks hold now, gathered as it is read, until they change it."""
        return Gathered(self._policy, self._gather(self._changes), self._begun)

    def _gather(self, changes: int) -> Gather:
        """Gathers weights as they are after so many changes."""

        def gather(names: Sequence[str]) -> list[Tensor]:
            with self._one:
                if changes != self._changes:
                    raise Superseded("the learner has changed its weights since")
                found: list[Tensor] = self._together("whole", (names,), lambda: carry_out(self._own, "whole", (names,)))
                return found

        return gather

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
            except RankLost as error:
                self._broken = str(error)
                raise

        return together

    def load(self, directory: Path) -> None:
        """Continue exactly where `save` was called. Raises ValueError for another model's state."""
        self._own.check(directory)
        self._change("load", directory)

    def save_policy(self, directory: Path) -> None:
        """Write the policy as a checkpoint folder, one weight after the other."""
        with working("saving the policy"):
            if not isinstance(self._policy, AdaptedPolicy):
                write_policy(self._policy, self._gathered(), directory)
                return
            gathered = self._gathered()
            write_policy(self._policy.base, gathered, directory)
            self._policy.write_adapter(gathered.learned, directory / FOLDER)

    def on_stop_request(self, notify: Callable[[], None]) -> None:
        """See `Learner.on_stop_request`."""
        self._group.on_stop_request(notify)

    def close(self) -> None:
        """End the ranks and let go of the connections."""
        try:
            if not self._broken:
                self._changes += 1  # a thread that still hands weights over stops
                self._together(CLOSE, (), self._own.sharding.state.close)
        finally:
            self._broken = "the learner is closed"
            self._group.leave()

    def _change(self, name: str, *arguments: Any) -> Any:
        """A command that changes weights: those that have been given out so far cannot be read any more."""
        with self._one:
            self._changes += 1
            return self._call(name, *arguments)

    def _call(self, name: str, *arguments: Any) -> Any:
        with working(f"learner ranks: {name}"):
            return self._together(name, arguments, lambda: carry_out(self._own, name, arguments))

    def _together(self, name: str, arguments: tuple[Any, ...], own: Callable[[], Any]) -> Any:
        with self._one:
            if self._broken:
                how = "read the logs of the ranks, and start the run again: it goes on from its newest checkpoint"
                raise RankLost(f"{name!r} is not possible any more: {self._broken}", where="learner.ranks", how=how)
            try:
                with self._group.collective(name):
                    self._group.send((name, *arguments))
                    return own()
            except BaseException as error:
                if not (name == "save" and isinstance(error, OSError)):  # of which every rank has learned
                    self._broken = f"{name!r} failed: {error}"  # the others are in the middle of something
                raise


class Leader(Leading[TorchLearner], Learner):
    """Rank 0 of the learner of stage `train`, as the loop sees it."""

    @property
    def coefficients(self) -> Coefficients:
        return self._own.coefficients

    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        self._call("configure", settings, objective)

    def weights(self) -> Weights:
        found = self._gathered()
        return Weights(found, self.scores, self._own.dtype, found.apart)

    def logprobs(self, batch: Batch, temperature: float | None = None) -> Tensor:
        found: Tensor = self._call("logprobs", batch, temperature)
        return found

    def reference(self, batch: Batch) -> Tensor:
        found: Tensor = self._call("reference", batch)
        return found

    def step(self, batch: Batch, seed: int, norm_limit: float = math.inf) -> dict[str, float]:
        signals: dict[str, float] = self._change("step", batch, seed, norm_limit)
        return signals

    def broken(self) -> int:
        return int(self._call("broken"))

    def rest(self) -> None:
        self._call("rest")

    def weights_at(self, directory: Path) -> Weights:
        stored = StoredWeights(directory / WEIGHTS)
        found = Gathered(self._policy, self._gather(self._changes), self._begun, stored)
        return Weights(found, None, self._own.dtype, found.apart)
