"""The seam between a run and what is wrong with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Self

from components.learner.base import Learner
from components.learner.batch import Batch
from components.rewards import Scorer
from components.rollout import Engine, Sampling
from components.scheduling import Schedule
from components.seeds import derive
from components.types import Completion, Group, Prompt, Score

if TYPE_CHECKING:
    from tests.benchmarks.health.grounds import Ground

LATE = range(10, 16)
"""Steps in which a fault that is not there from the start may begin."""


@dataclass
class Clock:
    """The steps that the run has finished; it goes on counting after a roll-back."""

    step: int = 0


class Fault:
    """Nothing is wrong. A fault replaces one of the methods, each of which wraps a part that the loop is given.

    ``changes`` are settings over those of the trial; see `changes_on` for those that depend on the ground. ``late``:
    begins at a step of `LATE` that the seed draws.
    """

    changes: ClassVar[dict[str, Any]] = {}
    late: ClassVar[bool] = False

    def __init__(self, seed: int, clock: Clock | None = None) -> None:
        self.seed, self.clock = seed, clock or Clock()
        self.begins = LATE[derive(seed, "begins") % len(LATE)] if self.late else 0

    def fitted(self, ground: Ground) -> Self:
        """This fault, with what depends on the ground: when it begins, and sizes that its runs set."""
        if self.late:
            self.begins = ground.late[derive(self.seed, "begins") % len(ground.late)]
        return self

    def changes_on(self, ground: Ground) -> dict[str, Any]:
        """The settings of ``changes``; a fault whose values depend on those of the ground has its own."""
        return self.changes

    @property
    def active(self) -> bool:
        return self.clock.step >= self.begins

    def prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return prompts

    def schedule(self, schedule: Schedule) -> Schedule:
        return schedule

    def scorer(self, scorer: Scorer) -> Scorer:
        return scorer

    def engine(self, engine: Engine) -> Engine:
        return engine

    def learner(self, learner: Learner) -> Learner:
        return learner


class Around:
    """Whatever is not replaced is the wrapped object's own."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not set yet: while copied or unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)


class AroundScorer(Around, ABC):
    """A scorer whose scores of a group are changed by `changed`."""

    def score_groups(self, items: Sequence[tuple[Prompt, Sequence[Completion]]]) -> list[tuple[Score, ...]]:
        scored = self.inner.score_groups(items)
        return [tuple(self.changed(p, cs, ss)) for (p, cs), ss in zip(items, scored, strict=True)]

    def score(self, prompt: Prompt, completions: Sequence[Completion]) -> tuple[Score, ...]:
        return self.score_groups([(prompt, completions)])[0]

    @abstractmethod
    def changed(self, prompt: Prompt, completions: Sequence[Completion], scores: tuple[Score, ...]) -> Iterable[Score]:
        """The scores of one group as the faulty verifier gives them."""


class AroundEngine(Around):
    """An engine; `generate` and `load_weights` are what a fault replaces."""

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        return list(self.inner.generate(prompts, sampling))

    def load_weights(self, weights: dict[str, Any]) -> None:
        self.inner.load_weights(weights)


class AroundLearner(Around):
    """A learner; `step` is what a fault replaces."""

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
        return dict(self.inner.step(batch, seed, norm_limit))


class AroundSchedule(Around):
    """A schedule; prompts that the wrapped one does not know are hidden from it when it observes."""

    def next(self, count: int) -> list[Prompt]:
        return list(self.inner.next(count))

    def observe(self, groups: Sequence[Group]) -> None:
        known = {prompt.id for prompt in self.inner.prompts}
        self.inner.observe([group for group in groups if group.prompt.id in known])
