"""Scores groups of completions: raw accuracy from the sandboxed verifier, then the shaping parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from components.config.reward import RewardSettings
from components.rewards.process import WORKER
from components.rewards.sandbox import Sandbox
from components.rewards.shaping import soft_overlong
from components.types import Completion, Prompt, Score


class Scorer:
    """Holds one verifier process; use it as a context manager so that the process ends with the block."""

    def __init__(self, settings: RewardSettings, command: Sequence[str] = WORKER) -> None:
        self._overlong = settings.soft_overlong
        self._sandbox = Sandbox(settings.verifier, settings.sandbox, command)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sandbox.close()

    def score(self, prompt: Prompt, completions: Sequence[Completion]) -> tuple[Score, ...]:
        """One score per completion, in order."""
        return self.score_groups([(prompt, completions)])[0]

    def score_groups(self, items: Sequence[tuple[Prompt, Sequence[Completion]]]) -> list[tuple[Score, ...]]:
        """One score per completion of each prompt, in order; all of them are judged in one exchange."""
        texts = [(prompt, completion.text) for prompt, completions in items for completion in completions]
        verdicts = iter(self._sandbox.judge(texts))
        return [tuple(self._shape(next(verdicts), c) for c in completions) for _, completions in items]

    def _shape(self, score: Score, completion: Completion) -> Score:
        if self._overlong is None or score.accuracy is None:
            return score
        penalty = soft_overlong(len(completion.token_ids), self._overlong.limit, self._overlong.cache)
        return replace(score, parts={**score.parts, "overlong": penalty})
