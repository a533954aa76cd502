"""Rollouts for the loop, from a sampler that may be at work while the learner is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from typing import TypeVar

from torch import Tensor

from components.canaries.items import Measured
from components.errors import PeerLost, RankLost
from components.health.responses import Saved
from components.policy.weights import Weights
from components.processes.stopping import STOPPING, Stopping
from components.rollout import Collector, Rollout
from components.training.background import finished, worker
from components.training.canaries import Canaries
from components.training.golden import Rejudged, rejudged
from components.training.heldout import HeldOut
from components.training.run import RunState
from components.training.second_opinion import SecondOpinion
from components.types import Group

T = TypeVar("T")


class Rollouts:
    """Everything that is sampled for the loop, by one worker, in the order of the loop's requests.

    Without `rollout.asynchrony` the worker is the loop itself. With it, it is a thread, and the rollout of step k is
    requested at step k - ``max_staleness``, or where the run began or went back to: always with the weights, the
    settings and the quarantine of that step, so that the same seed gives the same bytes. The schedule belongs to the
    worker while anything is under way; what the loop may know of it comes with the rollouts.
    """

    def __init__(
        self,
        state: RunState,
        collector: Collector,
        held_out: HeldOut,
        canaries: Canaries,
        second: SecondOpinion,
        stopping: Stopping = STOPPING,
    ) -> None:
        self._state, self._collector, self._stopping = state, collector, stopping
        self._held_out, self._canaries, self._second = held_out, canaries, second
        self._how = state.responder.started.rollout.asynchrony
        self.ahead = 0 if self._how is None else self._how.max_staleness
        self._worker = worker("rollouts", background=self._how is not None)
        self._queue: deque[Future[Rollout]] = deque(finished(rollout) for rollout in state.pending)
        self._kept: Weights | None = None  # weights of the present version, where the engine has still others
        self._loaded = state.version  # what the engine samples from
        self._shared = False  # whether the engine gives up memory for the learner

    def dev(self) -> Future[list[Group]]:
        """The dev split as the present policy answers it."""
        seed = self._state.seed()
        return self._ask(lambda: self._held_out.sample(seed))

    def dev_of(self, weights: Mapping[str, Tensor]) -> Future[list[Group]]:
        """The dev split as a policy with other weights answers it; afterwards the engine has the present ones again."""
        seed, engine, learner = self._state.seed(), self._state.engine, self._state.learner
        present = self._kept if self._kept is not None else learner.weights()

        def sample() -> list[Group]:
            engine.load_weights(weights)
            try:
                return self._held_out.sample(seed)
            finally:
                engine.load_weights(present)

        return self._ask(sample)

    def golden(self, step: int | None = None) -> Future[list[Rejudged]]:
        """Completions of earlier steps, judged again: those of a step, or all."""
        items = self._state.evidence.golden.items if step is None else self._state.evidence.golden.due(step)
        return self._ask(lambda: rejudged(items, self._collector.scored([item.judged for item in items])))

    def canaries(self) -> Future[list[Measured]]:
        """The probe sets that are due, as the present policy answers them."""
        progress, jump = self._state.progress, self._state.evidence.jumps.latest
        return self._ask(lambda: self._canaries.generation(progress, jump))

    def take(self) -> Rollout:
        """The rollout of the present step, once those of the steps ahead are requested.

        What has gone into quarantine since the request is not trained on. An error of the sampler is raised here.
        """
        steps = self._state.responder.started.train.steps
        while len(self._queue) <= self.ahead and self._state.progress + len(self._queue) < steps:
            self._queue.append(self._rollout(self._state.progress + len(self._queue)))
        rollout, barred = self._queue.popleft().result(), self._state.barred
        return replace(rollout, trained=tuple(group for group in rollout.trained if group.prompt.id not in barred))

    def rest(self) -> None:
        """Nothing more is sampled before weights are handed over: the engine may give up memory for the update."""
        self._shared = self._state.engine.rest()

    def _rollout(self, progress: int) -> Future[Rollout]:
        seed, barred = self._state.seed(progress), self._state.barred
        schedule, count = self._state.schedule, self._state.responder.started.train.prompts_per_step
        number = self._number
        return self._ask(lambda: number(self._collector.step(schedule, count, seed, barred)))

    def _ask(self, job: Callable[[], T]) -> Future[T]:
        """Have it done with the present weights and settings, after everything that was requested before."""
        settings, kept, version = self._state.responder.settings, self._kept, self._state.version
        review, redrawn = self._second.review(settings.audit), self._state.responder.repairs.redrawn

        def run() -> T:
            if kept is not None and self._loaded != version:
                self._give(kept)
                self._loaded = version
            if redrawn:
                self._state.schedule.take_over()
            self._collector.configure(settings.rollout, shaping=settings.reward.shaping, review=review)
            return job()

        return self._worker.submit(run)

    @property
    def _number(self) -> Callable[[Rollout], Rollout]:
        """Writes the version of the weights for every token, where versions differ from step to step."""
        version, reported = self._state.version, getattr(self._state.engine, "version", None)
        if reported is not None and (self._how is None or self._how.in_flight):
            shift = version - int(
                reported
            )  # the engine counts hand-overs of its own life, the state those of the run's
            return lambda rollout: rollout.numbered(lambda one: tuple(number + shift for number in one.versions))
        if self._how is None:
            return lambda rollout: rollout
        return lambda rollout: rollout.numbered(lambda one: (version,) * len(one.token_ids))

    def load_weights(self, weights: Weights) -> None:
        """What is requested from now on is sampled from these weights; what is under way stays what it is.

        With ``in_flight`` they are given to the engine at once. A thread gets a copy: the learner's own will change.
        A stopping run gives them only where a diagnosis samples once more: servers may be ending, too.
        """
        self._state.version += 1
        if self._stopping.requested and (self._how is None or self._how.in_flight):
            self._kept = weights  # there is no further update that would change them
        elif self._how is None or self._how.in_flight:
            self._give(weights)
            self._loaded = self._state.version
        else:
            self._kept = self._state.engine.keep(weights)

    def _give(self, weights: Weights) -> None:
        """Give weights to the engine. A failure is ignored where the run was requested to stop
        meanwhile."""
        if self._shared:
            self._state.learner.rest()
        try:
            self._state.engine.load_weights(weights)
        except RankLost:
            raise
        except PeerLost:
            if not self._stopping.requested:
                raise

    def settle(self) -> None:
        """Wait for what is under way, and let the state hold it: a checkpoint may be made now."""
        self._state.pending = [rollout.result() for rollout in self._queue]

    def go_back(self, to: Saved) -> None:
        """Go back to a checkpoint. What was sampled ahead is thrown away: it is what the run is to leave."""
        self.discard()
        self._state.roll_back(to)
        self._state.version += 1
        self._kept, self._loaded = None, self._state.version

    def discard(self) -> None:
        """Throw away what was sampled ahead; returns when nothing is under way."""
        for rollout in self._queue:
            rollout.cancel()
        wait_for(self._queue)
        self._queue.clear()

    def __enter__(self) -> Rollouts:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the thread, once it is through with what it is at; nothing that it has not begun is begun.

        An error of the loop does not wait for a whole rollout: what the engine is at is cancelled.
        """
        self._worker.shutdown(wait=False, cancel_futures=True)
        if kind is not None:
            self._state.engine.cancel()
        self._worker.shutdown()
