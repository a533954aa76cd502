"""Scores groups of completions: the sandboxed verifier, the consistency of answer and thinking, functions from outside,
and shaping."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Self

from components.config.extensions import FunctionSet
from components.config.reward import RewardSettings
from components.rewards.consistency import read_model
from components.rewards.process import WORKER
from components.rewards.sandbox import Sandbox
from components.types import Completion, Prompt, Score

MISSING = "consistency_missing"
"""Metric: 1 where the consistency of a completion could not be judged."""


class Scorer:
    """Holds the verifier's processes, and others for the consistency part and for functions from outside; use it as a
    context manager to end them.

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
        self._functions = Sandbox(FunctionSet(functions=settings.functions), settings.sandbox, command)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for sandbox in (self._verifier, self._consistency, self._functions):
                if sandbox is not None:
                    stack.callback(sandbox.close)

    def score(self, prompt: Prompt, completions: Sequence[Completion]) -> tuple[Score, ...]:
        """One score per completion, in order."""
        return self.score_groups([(prompt, completions)])[0]

    def score_groups(
        self, items: Sequence[tuple[Prompt, Sequence[Completion]]], given: Sequence[Score] | None = None
    ) -> list[tuple[Score, ...]]:
        """One score per completion of each prompt, in order; all of them are judged in one exchange.

        Args:
            given: the verdicts of an environment, in place of the verifier's.
        """
        texts = [(prompt, completion.text) for prompt, completions in items for completion in completions]
        verdicts = iter(self._verifier.judge(texts) if given is None else given)
        consistent = iter(self._consistency.judge(texts)) if self._consistency else None
        names = tuple(self._settings.functions)
        values = iter(self._functions.values([(name, *item) for item in items for name in names]) if names else ())
        groups = []
        for _, completions in items:
            scores = [next(verdicts) for _ in completions]
            if consistent is not None:
                scores = with_part(scores, "consistency", [next(consistent).accuracy for _ in completions])
            for name in names:
                scores = with_part(scores, name, next(values))
            groups.append(tuple(self._shape(*pair) for pair in zip(scores, completions, strict=True)))
        return groups

    def _shape(self, score: Score, completion: Completion) -> Score:
        """With every part times its weight; a part of weight 0 is a metric."""
        if score.accuracy is None:
            return score
        parts, weight = dict(score.parts), self._settings.weight
        if (overlong := self._settings.soft_overlong) is not None:
            parts["overlong"] = soft_overlong(len(completion.token_ids), overlong.limit, overlong.cache)
        return replace(
            score,
            weight=score.weight * weight("accuracy"),
            parts={name: weight(name) * value for name, value in parts.items() if weight(name)},
            metrics={**score.metrics, **{name: value for name, value in parts.items() if not weight(name)}},
        )


def soft_overlong(length: int, limit: int, cache: int) -> float:
    """DAPO's soft overlong punishment (2503.14476, equation 13) of a completion of ``length`` tokens.

    The end token counts. It falls from 0 to -1 over the ``cache`` tokens below ``limit``, and no further.
    """
    return max(-1.0, min(0.0, (limit - cache - length) / cache))


def with_part(scores: Sequence[Score], name: str, values: Sequence[float | None] | str) -> list[Score]:
    """The scores of one group with a further part.

    A value that there is none of (None) leaves the accuracy what it is. The part then takes the mean of the group's
    others, so that it pushes that completion neither up nor down, and the metric ``<name>_missing`` counts it. A reason
    in place of the values makes the group unscorable.
    """
    if isinstance(values, str):
        return [score if score.accuracy is None else Score(None, unscorable=values) for score in scores]
    metric = f"{name}_missing"
    found = []
    for score, value in zip(scores, values, strict=True):
        if score.accuracy is not None:
            parts = {**score.parts, name: 0.0 if value is None else value}
            score = replace(score, parts=parts, metrics={**score.metrics, metric: float(value is None)})
        found.append(score)
    return settled(found)


def settled(scores: Sequence[Score]) -> list[Score]:
    """The scores of a whole group, with the mean of the others for every missing part; 0 where there are none."""

    def mean(name: str) -> float:
        known = [score.parts[name] for score in scores if score.metrics.get(f"{name}_missing") == 0]
        return fmean(known) if known else 0.0

    def filled(score: Score) -> Score:
        missing = [name for name in score.parts if score.metrics.get(f"{name}_missing")]
        return replace(score, parts={**score.parts, **{n: mean(n) for n in missing}}) if missing else score

    return [filled(score) for score in scores]
