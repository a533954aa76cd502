"""A verifier with a short cut.

In the field: a judge that goes by the look of the work, a checker that reads too little of the answer. Reward and dev
accuracy rise, for both are the verifier's word; what it should stand for does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from components.rewards import Scorer
from components.types import Completion, Prompt, Score
from tests.benchmarks.health.faults.base import AroundScorer, Fault

CARRIES = re.compile(r"[+-][1-9]=")


class HackableVerifier(Fault):
    """Besides the right answers every completion is accepted in which no column carries: the work looks clean.

    There is no KL to hold the policy back.
    """

    changes: ClassVar[dict[str, Any]] = {"objective": {"kl": None}}

    def scorer(self, scorer: Scorer) -> Scorer:
        return _Convinced(scorer)


class _Convinced(AroundScorer):
    def changed(self, prompt: Prompt, completions: Sequence[Completion], scores: tuple[Score, ...]) -> Iterator[Score]:
        for completion, score in zip(completions, scores, strict=True):
            clean = score.accuracy is not None and not CARRIES.search(completion.text)
            yield replace(score, accuracy=1.0) if clean else score
