"""Verifiers that are too lenient or too strict, mix up what they judged, or pay for something else."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from components.rewards import Scorer
from components.types import Completion, Prompt, Score
from tests.benchmarks.health.faults.base import AroundScorer
from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.base import HeldBack

MARKER = "#"
Scores = Sequence[Score]
Completions = Sequence[Completion]


class Rejudged(HeldBack, Generated):
    """The scores of a group become others; ``share`` of them are touched."""

    part = "verifier"
    sizes: ClassVar[tuple[float, ...]] = (0.3, 1.0)

    @property
    def share(self) -> float:
        return self.size

    def scorer(self, scorer: Scorer) -> Scorer:
        return _Rejudging(scorer, self)  # type: ignore[return-value]

    @abstractmethod
    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        """The scores of a group as they are given; those without an accuracy are not looked at."""


class _Rejudging(AroundScorer):
    def __init__(self, inner: Scorer, fault: Rejudged) -> None:
        super().__init__(inner)
        self._fault, self._calls = fault, 0

    def changed(self, prompt: Prompt, completions: Completions, scores: tuple[Score, ...]) -> Iterator[Score]:
        self._calls += 1
        fault = self._fault
        if not fault.strength:
            yield from scores
            return
        for place, (old, new) in enumerate(zip(scores, fault.rejudged(prompt, completions, scores), strict=True)):
            touched = old.accuracy is not None and fault.touches(place, prompt.family)
            yield new if touched and fault.hits(fault.share, self._calls, place) else old


def given(score: Score, right: bool) -> Score:
    return score if score.accuracy is None else replace(score, accuracy=float(right))


class OnePlaceLate(Rejudged):
    """Each completion gets the verdict of the one before it."""

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        return [*scores[-1:], *scores[:-1]]


class WrongKey(Rejudged):
    """Verdicts are kept by the length of a text alone, and given again for other texts of that length."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._kept: dict[int, float] = {}

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        found = []
        for one, score in zip(completions, scores, strict=True):
            right = self._kept.setdefault(len(one.text), score.accuracy or 0.0)
            found.append(given(score, right == 1))
        return found


class Anywhere(Rejudged):
    """Right is what holds the reference answer anywhere."""

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        return [given(score, prompt.answer in one.text) for one, score in zip(completions, scores, strict=True)]


class Tolerant(Rejudged):
    """Right is what is near enough; ``size`` is the relative tolerance."""

    sizes = (0.1, 0.5, 10.0)

    @property
    def share(self) -> float:
        return 1.0

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        return [
            given(score, score.accuracy == 1 or self._near(prompt.answer, one.text))
            for one, score in zip(completions, scores, strict=True)
        ]

    def _near(self, reference: str, text: str) -> bool:
        try:
            right, found = float(reference), float(text.rpartition(MARKER)[2])
        except ValueError:
            return False
        return abs(right - found) <= self.size * self.strength * max(1.0, abs(right))


class FormAlone(Rejudged):
    """Right is what states an answer, whichever."""

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        return [given(score, MARKER in one.text) for one, score in zip(completions, scores, strict=True)]


class OneDigit(Rejudged):
    """Answers of more than one character are not understood."""

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        return [given(score, score.accuracy == 1 and len(prompt.answer) == 1) for score in scores]


class Overloaded(Rejudged):
    """The longest completions of a group, a share of ``size``, are not judged in time."""

    sizes = (0.25, 0.75)

    @property
    def share(self) -> float:
        return 1.0

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        order = sorted(range(len(completions)), key=lambda n: -len(completions[n].token_ids))
        late = set(order[: round(self.size * self.strength * len(order))])
        return [Score(None, unscorable="timeout") if n in late else score for n, score in enumerate(scores)]


class PaidByLength(Rejudged):
    """A part of the reward pays for length; the verdicts themselves are sound."""

    sizes = (1.0, 10.0)
    LONG = 40

    @property
    def share(self) -> float:
        return 1.0

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        pay = self.size * self.strength / self.LONG
        return [
            replace(score, parts={**score.parts, "overlong": pay * len(one.token_ids)})
            for one, score in zip(completions, scores, strict=True)
        ]


class OneForAll(Rejudged):
    """All of a group get the verdict of its first."""

    def rejudged(self, prompt: Prompt, completions: Completions, scores: Scores) -> Scores:
        return [given(score, scores[0].accuracy == 1) for score in scores]


VERIFIERS = (
    OnePlaceLate,
    WrongKey,
    Anywhere,
    Tolerant,
    FormAlone,
    OneDigit,
    Overloaded,
    PaidByLength,
    OneForAll,
)
