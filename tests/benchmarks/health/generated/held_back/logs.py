"""Figures that are reported wrongly while the training itself is sound."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp, inf

from components.learner.base import Learner
from components.learner.batch import Batch
from components.rewards import Scorer
from components.seeds import derive
from components.types import Completion, Prompt, Score
from tests.benchmarks.health.faults.base import AroundLearner, AroundScorer
from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.base import HeldBack

FIGURES = ("grad_norm", "entropy", "loss", "lr", "kl_rollout_k1")
"""Of an update; the seed decides which of them is wrong."""
Signals = dict[str, float]


class Misprinted(HeldBack, Generated):
    """One figure of an update is reported wrongly."""

    part = "logging"
    scopes = ("all",)

    def learner(self, learner: Learner) -> Learner:
        return _Misprinting(learner, self)  # type: ignore[return-value]

    @abstractmethod
    def printed(self, name: str, past: Sequence[Signals]) -> float:
        """The figure that is reported; the last of the ``past`` is what it should be, the others were before."""


class _Misprinting(AroundLearner):
    def __init__(self, inner: Learner, fault: Misprinted) -> None:
        super().__init__(inner)
        self._fault = fault
        self._past: list[Signals] = []

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> Signals:
        signals, fault = super().step(batch, seed, norm_limit), self._fault
        known = [name for name in FIGURES if name in signals]
        self._past.append(dict(signals))
        if fault.strength and known:
            name = known[derive(fault.seed, "figure") % len(known)]
            signals[name] = fault.printed(name, self._past)
        return signals


class StuckFigure(Misprinted):
    """A figure stays what it was in the first update."""

    sizes = (1.0,)

    def printed(self, name: str, past: Sequence[Signals]) -> float:
        return past[0].get(name, 0.0)


class LateFigure(Misprinted):
    """A figure is that of ``size`` updates before."""

    sizes = (3, 10)

    def printed(self, name: str, past: Sequence[Signals]) -> float:
        at = max(0, len(past) - 1 - round(self.size * self.strength))
        return past[at].get(name, past[-1][name])


class WrongUnit(Misprinted):
    """A figure is reported in another unit, ``size`` times too high."""

    sizes = (2.0, 10.0, 1000.0)

    def printed(self, name: str, past: Sequence[Signals]) -> float:
        return past[-1][name] * (1 + (self.size - 1) * self.strength)


class NoisyFigure(Misprinted):
    """A figure is off by a random factor, up to e to the ``size`` either way."""

    sizes = (0.5, 3.0)

    def printed(self, name: str, past: Sequence[Signals]) -> float:
        coin = derive(self.seed, "noise", len(past)) % 2001 / 1000 - 1
        return past[-1][name] * exp(coin * self.size * self.strength)


class DevMisread(HeldBack, Generated):
    """Verdicts of prompts that are not trained on are reported wrongly: those of the dev split."""

    part = "logging"
    scopes = ("all", "family")

    def prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        self.trained = {prompt.id for prompt in prompts}
        return super().prompts(prompts)

    def scorer(self, scorer: Scorer) -> Scorer:
        return _DevMisreading(scorer, self)  # type: ignore[return-value]

    @abstractmethod
    def read(self, place: int, prompt: Prompt, accuracy: float, before: float | None) -> float:
        """What is reported of a completion; ``before`` is what was, when it was last reported rightly."""


class _DevMisreading(AroundScorer):
    def __init__(self, inner: Scorer, fault: DevMisread) -> None:
        super().__init__(inner)
        self._fault = fault
        self._before: dict[tuple[str, int], float | None] = {}

    def changed(self, prompt: Prompt, completions: Sequence[Completion], scores: tuple[Score, ...]) -> Iterator[Score]:
        fault = self._fault
        for place, score in enumerate(scores):
            key = prompt.id, place
            if score.accuracy is None or prompt.id in fault.trained or not fault.touches(place, prompt.family):
                yield score
            elif fault.strength:
                read = fault.read(place, prompt, score.accuracy, self._before.get(key))
                yield replace(score, accuracy=read)
            else:
                self._before[key] = score.accuracy
                yield score


class OldDev(DevMisread):
    """The dev split's verdicts are those of the last measurement before."""

    sizes = (1.0,)

    def read(self, place: int, prompt: Prompt, accuracy: float, before: float | None) -> float:
        return before if before is not None and self.hits(self.size, prompt.id) else accuracy


class GloomyDev(DevMisread):
    """A share of the dev split's right answers are reported as wrong."""

    sizes = (0.2, 0.6)

    def read(self, place: int, prompt: Prompt, accuracy: float, before: float | None) -> float:
        return 0.0 if self.hits(self.size, prompt.id, place) else accuracy


class RosyDev(DevMisread):
    """A share of the dev split's wrong answers are reported as right."""

    sizes = (0.2, 0.6)

    def read(self, place: int, prompt: Prompt, accuracy: float, before: float | None) -> float:
        return 1.0 if self.hits(self.size, prompt.id, place) else accuracy


LOGS = (StuckFigure, LateFigure, WrongUnit, NoisyFigure, OldDev, GloomyDev, RosyDev)
