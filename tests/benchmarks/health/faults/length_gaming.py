"""Paid by the token.

In the field: a bonus for reasoning that is measured by its length. Where all answers of a group are equally good it is
all that is left to learn from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from components.rewards import Scorer
from components.types import Completion, Prompt, Score
from tests.benchmarks.health.faults.base import AroundScorer, Fault

if TYPE_CHECKING:
    from tests.benchmarks.health.grounds import Ground

PER_TOKEN = 0.5


class LengthGaming(Fault):
    """A reward part of a half per token without bound, no overlong penalty, and half as much room again."""

    def changes_on(self, ground: Ground) -> dict[str, Any]:
        return {"reward": {"soft_overlong": None}, "rollout": {"max_new_tokens": ground.room * 3 // 2}}

    def scorer(self, scorer: Scorer) -> Scorer:
        return _ByTheToken(scorer)


class _ByTheToken(AroundScorer):
    def changed(self, prompt: Prompt, completions: Sequence[Completion], scores: tuple[Score, ...]) -> Iterator[Score]:
        for completion, score in zip(completions, scores, strict=True):
            paid = {**score.parts, "length": PER_TOKEN * len(completion.token_ids)}
            yield score if score.accuracy is None else replace(score, parts=paid)
