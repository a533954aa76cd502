"""Verdicts that are not what they should be; those of the dev split too, which the same verifier judges."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from components.rewards import Scorer
from components.types import Completion, Prompt, Score
from tests.benchmarks.health.faults.base import AroundScorer
from tests.benchmarks.health.generated.base import Generated

if TYPE_CHECKING:
    from tests.benchmarks.health.grounds import Ground

SHORT = 12
"""Tokens below which a completion is short, unless the ground says otherwise."""


class Misjudged(Generated):
    """``size`` is the share of verdicts that are touched."""

    part = "verifier"
    sizes = (0.1, 0.3, 1.0)

    def scorer(self, scorer: Scorer) -> Scorer:
        return _Misjudging(scorer, self)

    @abstractmethod
    def misjudged(self, score: Score, completion: Completion) -> Score:
        """The verdict that is given instead; ``score`` has an accuracy."""


class _Misjudging(AroundScorer):
    def __init__(self, inner: Scorer, fault: Misjudged) -> None:
        super().__init__(inner)
        self._fault, self._calls = fault, 0

    def changed(self, prompt: Prompt, completions: Sequence[Completion], scores: tuple[Score, ...]) -> Iterator[Score]:
        self._calls += 1
        fault = self._fault
        for place, (completion, score) in enumerate(zip(completions, scores, strict=True)):
            touched = score.accuracy is not None and fault.touches(place, prompt.family)
            wrong = touched and fault.hits(fault.size, self._calls, place)
            yield fault.misjudged(score, completion) if wrong else score


class Turned(Misjudged):
    """Right is wrong and wrong is right."""

    def misjudged(self, score: Score, completion: Completion) -> Score:
        return replace(score, accuracy=1 - (score.accuracy or 0.0))


class Accepting(Misjudged):
    """Everything is right."""

    def misjudged(self, score: Score, completion: Completion) -> Score:
        return replace(score, accuracy=1.0)


class Refusing(Misjudged):
    """Nothing is right."""

    def misjudged(self, score: Score, completion: Completion) -> Score:
        return replace(score, accuracy=0.0)


class Unable(Misjudged):
    """Nothing can be judged: time-outs."""

    def misjudged(self, score: Score, completion: Completion) -> Score:
        return Score(None, unscorable="timeout")


class ByLength(Misjudged):
    """Right is what is short."""

    limit = SHORT

    def fitted(self, ground: Ground) -> Self:
        self.limit = ground.short
        return super().fitted(ground)

    def misjudged(self, score: Score, completion: Completion) -> Score:
        return replace(score, accuracy=float(len(completion.token_ids) < self.limit))


VERIFIERS = (Turned, Accepting, Refusing, Unable, ByLength)
