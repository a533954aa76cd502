"""A second verifier looks at a sample of what is rewarded; it never rewards.

Where both judge the same way nothing is proved. Where they differ one of them is wrong, and a policy that has learned
to please the first shows as a disagreement that grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Self

import numpy as np

from components.audit.measure import accepted
from components.config.audit import AuditSettings
from components.config.sandbox import SandboxSettings
from components.rewards.sandbox import Sandbox
from components.seeds import derive
from components.types import Completion, Group, Prompt, Score

DISPUTED = "disputed"
"""Where two verifiers differ: how the reason for being unscorable begins, or the metric that says so."""
EXAMPLES = 2
"""Disagreements of a step that are kept in its record."""
Judged = tuple[Prompt, Completion, Score]


class SecondOpinion:
    """Holds the second verifier's workers, where the settings name one; use it as a context manager to end them."""

    def __init__(self, settings: AuditSettings, fence: SandboxSettings, seed: int) -> None:
        self._share, self._seed = settings.live_share, seed
        self._settings, self._fence = settings, fence
        self._sandbox: Sandbox | None = None
        self._one_at_a_time = Lock()  # a thread that samples calls it too

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sandbox is not None:
            self._sandbox.close()

    def _judge(self, texts: Sequence[tuple[Prompt, str]]) -> list[Score]:
        """The second verifier's scores, by workers that are started when they are first needed; none where there is no
        second verifier."""
        if self._settings.second is None or not texts:
            return []
        with self._one_at_a_time:
            if self._sandbox is None:
                self._sandbox = Sandbox(self._settings.second, self._fence)
            return self._sandbox.judge(texts)

    def compare(self, groups: Sequence[Group], step: int) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Signals of one step, and a few completions on which the two differ; none where ``live_share`` is 0.

        The sample, of one completion at least, is drawn by seed and step from what the first verifier could judge;
        what the second cannot judge is not compared. What `undisputed` has left out counts as judged differently.
        """
        sample = self._sample(groups, step) if self._share and self._settings.second is not None else []
        if not sample:
            return {}, []
        second = self._judge([(prompt, completion.text) for prompt, completion, _ in sample])
        compared = [(one, other) for one, other in zip(sample, second, strict=True) if other.accuracy is not None]
        if not compared:
            return {"second_compared": 0.0}, []
        differ = [(one, other) for one, other in compared if is_disputed(one[2]) or accepted(one[2]) != accepted(other)]
        signals = {
            "second_compared": float(len(compared)),
            "second_disagreement": len(differ) / len(compared),
            "second_doubted": sum(not accepted(other) for _, other in differ) / len(compared),
        }
        return signals, [_example(one, other) for one, other in differ[:EXAMPLES]]

    def review(self, settings: AuditSettings) -> Callable[[Sequence[Group]], list[Group]]:
        """What settles the scores of groups under these settings."""
        if settings.second_judges:
            return self.instead
        return self.undisputed if settings.agreement else list

    def accuracies(self, texts: Sequence[tuple[Prompt, str]]) -> list[float | None]:
        """The second verifier's verdict on each text; None where it cannot judge it, or there is no second
        verifier."""
        return [score.accuracy for score in self._judge(texts)] or [None] * len(texts)

    def instead(self, groups: Sequence[Group]) -> list[Group]:
        """The same groups as the second verifier judges them; what it cannot judge is unscorable."""
        return self._judged_again(groups, _replaced)

    def undisputed(self, groups: Sequence[Group]) -> list[Group]:
        """The same groups, right being what both verifiers accept.

        What only the first accepts is wrong: it may be a way to please it. What only the second accepts is unscorable:
        it may be right. What the second cannot judge stays as the first judged it.
        """
        return self._judged_again(groups, _settled)

    def _judged_again(self, groups: Sequence[Group], settle: Callable[[Score, Score], Score]) -> list[Group]:
        """The same groups, every score settled with the second verifier's; unchanged where there is none."""
        if self._settings.second is None:
            return list(groups)
        others = iter(self._judge([(group.prompt, one.text) for group in groups for one in group.completions]))
        return [replace(group, scores=tuple(settle(one, next(others)) for one in group.scores)) for group in groups]

    def _sample(self, groups: Sequence[Group], step: int) -> list[Judged]:
        judged = [
            (group.prompt, completion, score)
            for group in groups
            for completion, score in zip(group.completions, group.scores, strict=True)
            if score.accuracy is not None or is_disputed(score)
        ]
        count = min(len(judged), round(self._share * len(judged)) or 1)
        stream = np.random.default_rng(derive(self._seed, "second", step))
        return [judged[int(i)] for i in np.sort(stream.choice(len(judged), size=count, replace=False))]


def is_disputed(score: Score) -> bool:
    """Whether `SecondOpinion.undisputed` changed it."""
    return bool(score.metrics.get(DISPUTED)) or (score.unscorable or "").startswith(DISPUTED)


def _settled(one: Score, other: Score) -> Score:
    if one.accuracy is None or other.accuracy is None:
        return one
    if accepted(one) == accepted(other):
        return replace(one, metrics={**one.metrics, DISPUTED: 0.0})
    if accepted(other):
        return Score(None, unscorable=f"{DISPUTED}: only the second verifier accepts it")
    return replace(one, accuracy=0.0, metrics={**one.metrics, DISPUTED: 1.0})


def _replaced(one: Score, other: Score) -> Score:
    reason = "the second verifier cannot judge it" if other.accuracy is None else None
    return replace(one, accuracy=other.accuracy, unscorable=reason)


def _example(judged: Judged, second: Score) -> dict[str, Any]:
    prompt, completion, score = judged
    return {"prompt": prompt.id, "text": completion.text, "first": score.accuracy, "second": second.accuracy}
