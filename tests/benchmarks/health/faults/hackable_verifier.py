"""A verifier with a short cut.

In the field: a judge that a phrase convinces, a checker that reads too little of the answer. Reward and dev accuracy
rise, for both are the verifier's word; what it should stand for falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from components.rewards import Scorer
from components.types import Completion, Prompt, Score
from tests.benchmarks.health.faults.base import AroundScorer, Fault

SHORT_CUT = "0"


class HackableVerifier(Fault):
    """Besides the right answers every completion that ends with a nought is accepted; there is no KL to hold it back."""

    changes: ClassVar[dict[str, Any]] = {"objective": {"kl": None}}

    def scorer(self, scorer: Scorer) -> Scorer:
        return _Convinced(scorer)


class _Convinced(AroundScorer):
    def changed(
        self, prompt: Prompt, completions: Sequence[Completion], scores: tuple[Score, ...]
    ) -> Iterator[Score]:
        for completion, score in zip(completions, scores, strict=True):
            cut = score.accuracy is not None and completion.text.endswith(SHORT_CUT)
            yield replace(score, accuracy=1.0) if cut else score
