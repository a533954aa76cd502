"""Scores groups of completions: the sandboxed verifier, the consistency of answer and thinking, and shaping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Self

from components.config.reward import RewardSettings
from components.rewards.consistency import read_model
from components.rewards.process import WORKER
from components.rewards.sandbox import Sandbox
from components.rewards.shaping import soft_overlong
from components.types import Completion, Prompt, Score

MISSING = "consistency_missing"
"""Metric: 1 where the consistency of a completion could not be judged."""


class Scorer:
    """Holds the verifier's process, and one for the consistency part; use it as a context manager to end them.

    Args:
        model: the file with the weights of the embedded consistency classifier, where the settings ask for it.

    Raises:
        InputError: that file is missing or is not such a model.
    """

    def __init__(self, settings: RewardSettings, model: Path | None = None, command: Sequence[str] = WORKER) -> None:
        self._settings = settings
        self._verifier = Sandbox(settings.verifier, settings.sandbox, command)
        self._consistency = None
        if (part := settings.consistency) is not None:
            self._consistency = Sandbox(part, part.sandbox, command, read_model(part, model))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for sandbox in (self._verifier, self._consistency):
                if sandbox is not None:
                    stack.callback(sandbox.close)

    def score(self, prompt: Prompt, completions: Sequence[Completion]) -> tuple[Score, ...]:
        """One score per completion, in order."""
        return self.score_groups([(prompt, completions)])[0]

    def score_groups(self, items: Sequence[tuple[Prompt, Sequence[Completion]]]) -> list[tuple[Score, ...]]:
        """One score per completion of each prompt, in order; all of them are judged in one exchange."""
        texts = [(prompt, completion.text) for prompt, completions in items for completion in completions]
        verdicts = iter(self._verifier.judge(texts))
        consistent = iter(self._consistency.judge(texts)) if self._consistency else None
        groups = []
        for _, completions in items:
            scores = [next(verdicts) for _ in completions]
            if consistent is not None:
                scores = with_consistency(scores, [next(consistent).accuracy for _ in completions])
            groups.append(tuple(self._shape(*pair) for pair in zip(scores, completions, strict=True)))
        return groups

    def _shape(self, score: Score, completion: Completion) -> Score:
        if score.accuracy is None:
            return score
        parts = dict(score.parts)
        if (overlong := self._settings.soft_overlong) is not None:
            parts["overlong"] = soft_overlong(len(completion.token_ids), overlong.limit, overlong.cache)
        return self._weigh(score, parts)

    def _weigh(self, score: Score, parts: Mapping[str, float]) -> Score:
        """The parts times their weights; a part of weight 0 is a metric."""
        weight = self._settings.weight
        return replace(
            score,
            weight=weight("accuracy"),
            parts={name: weight(name) * value for name, value in parts.items() if weight(name)},
            metrics={**score.metrics, **{name: value for name, value in parts.items() if not weight(name)}},
        )


def with_consistency(scores: Sequence[Score], consistent: Sequence[float | None]) -> list[Score]:
    """The scores of one group with the part ``consistency``.

    A consistency that could not be judged (None) leaves the accuracy what it is. The part then takes the mean of the
    group's others, so that it pushes that completion neither up nor down, and the metric `MISSING` counts it.
    """
    known = [value for value in consistent if value is not None]
    neutral = fmean(known) if known else 0.0
    return [
        score
        if score.accuracy is None
        else replace(
            score,
            parts={**score.parts, "consistency": neutral if value is None else value},
            metrics={**score.metrics, MISSING: float(value is None)},
        )
        for score, value in zip(scores, consistent, strict=True)
    ]
