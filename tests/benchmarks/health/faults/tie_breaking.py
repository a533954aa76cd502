"""A verifier that never sees a tie.

In the field: a preference model or a judge that is asked for a ranking. Zero-variance groups vanish from the charts,
and every group that used to carry no gradient carries noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components.rewards import Scorer
from components.seeds import derive
from components.types import Completion, Prompt, Score
from tests.benchmarks.health.faults.base import AroundScorer, Fault
from tests.benchmarks.health.faults.verifier_noise import turned


class TieBreaking(Fault):
    """In every group whose verdicts are all equal one of them, drawn by seed, is turned round."""

    def scorer(self, scorer: Scorer) -> Scorer:
        return _Untied(scorer, self.seed)


class _Untied(AroundScorer):
    def __init__(self, inner: Scorer, seed: int) -> None:
        super().__init__(inner)
        self._stream = np.random.default_rng(derive(seed, "ties"))

    def changed(self, prompt: Prompt, completions: Sequence[Completion], scores: tuple[Score, ...]) -> Sequence[Score]:
        chosen = int(self._stream.integers(len(scores)))
        if len({score.accuracy for score in scores}) > 1:
            return scores
        return [turned(score) if place == chosen else score for place, score in enumerate(scores)]
