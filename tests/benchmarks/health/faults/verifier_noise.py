"""A verifier that errs at random.

In the field: flaky tests, time-outs that count as wrong, a judge model with a temperature. It breaks ties, so fewer
groups look dead, while part of the gradient points at noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from components.rewards import Scorer
from components.seeds import derive
from components.types import Completion, Prompt, Score
from tests.benchmarks.health.faults.base import AroundScorer, Clock, Fault


class VerifierNoise(Fault):
    """A share ``rate`` of all verdicts is turned round, those of the dev split included."""

    def __init__(self, seed: int, clock: Clock | None = None, rate: float = 0.1) -> None:
        super().__init__(seed, clock)
        self.rate = rate

    def scorer(self, scorer: Scorer) -> Scorer:
        return _Noisy(scorer, self.seed, self.rate)


class _Noisy(AroundScorer):
    def __init__(self, inner: Scorer, seed: int, rate: float) -> None:
        super().__init__(inner)
        self._stream, self._rate = np.random.default_rng(derive(seed, "noise")), rate

    def changed(self, prompt: Prompt, completions: Sequence[Completion], scores: tuple[Score, ...]) -> Iterator[Score]:
        for score, wrong in zip(scores, self._stream.random(len(scores)) < self._rate, strict=True):
            yield turned(score) if wrong else score


def turned(score: Score) -> Score:
    """The opposite verdict; of what could not be judged there is none."""
    return score if score.accuracy is None else replace(score, accuracy=1 - score.accuracy)
