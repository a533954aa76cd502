"""From the results of single prompts to the figures of `out/evaluation.json`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from components.config.judgement import EvaluationSettings
from components.evaluation.statistics import mcnemar, paired_gain, pass_at_k
from components.seeds import derive
from components.types import mean_by_name


@dataclass(frozen=True, slots=True)
class PromptResult:
    """One test prompt under one policy.

    ``accuracies``, ``lengths`` (tokens) and ``truncated`` have one entry per sample at the training temperature;
    ``greedy`` is the accuracy of the greedy completion. An accuracy of None is unscorable: neither right nor wrong.
    ``reward`` (None when nothing was scorable), ``parts`` and ``metrics`` are means over the scorable samples.
    """

    id: str
    family: str
    difficulty: float
    accuracies: tuple[float | None, ...]
    greedy: float | None
    lengths: tuple[int, ...]
    truncated: tuple[bool, ...]
    reward: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.accuracies) == len(self.lengths) == len(self.truncated) > 0:
            raise ValueError(f"prompt {self.id}: accuracies, lengths and truncated must have one entry per sample")

    @property
    def scorable(self) -> list[float]:
        return [accuracy for accuracy in self.accuracies if accuracy is not None]

    @property
    def pass_at_1(self) -> float | None:
        """Mean accuracy of the scorable samples; None when there is none."""
        return _mean(self.scorable)

    def pass_at_k(self, k: int) -> float | None:
        """Unbiased pass@k; None with fewer than k scorable samples."""
        values = self.scorable
        return pass_at_k(len(values), sum(value == 1 for value in values), k) if len(values) >= k else None


def summarise(results: Sequence[PromptResult], k: int) -> dict[str, Any]:
    """One policy's figures, over all prompts and per family and difficulty.

    A figure that no prompt defines is None (null), never 0: the gate refuses it. ``parts`` are what each part beside
    the accuracy adds to ``reward``.
    """
    return {
        **_accuracies(results),
        "pass_at_k": _mean(result.pass_at_k(k) for result in results),
        "truncated_share": _mean(float(cut) for result in results for cut in result.truncated),
        "unscorable_share": _mean(float(a is None) for result in results for a in result.accuracies),
        "length_mean": _mean(float(length) for result in results for length in result.lengths),
        "reward": _mean(result.reward for result in results),
        "parts": mean_by_name(result.parts for result in results),
        "metrics": mean_by_name(result.metrics for result in results),
        "families": _slices(results, lambda result: result.family),
        "difficulty": _slices(results, lambda result: f"{result.difficulty:g}"),
    }


def compare(
    before: Sequence[PromptResult], after: Sequence[PromptResult], settings: EvaluationSettings, seed: int
) -> dict[str, Any]:
    """The SFT checkpoint and the trained policy on the same prompts, paired.

    Returns:
        `out/evaluation.json` without ``checkpoint_sha256``. k is the number of samples per prompt. ``gain`` is in
        sampled pass@1, ``greedy_gain`` in greedy accuracy, with McNemar's exact p-value; either is None when no
        prompt was scorable under both policies.

    Raises:
        ValueError: the two sides are not the same prompts in the same order.
    """
    if [result.id for result in before] != [result.id for result in after]:
        raise ValueError("before and after must be the same prompts in the same order")
    k = settings.samples
    return {
        "prompts": len(before),
        "samples": settings.samples,
        "k": k,
        "sft": summarise(before, k),
        "trained": summarise(after, k),
        "gain": _gain([(b.pass_at_1, a.pass_at_1) for b, a in zip(before, after, strict=True)], settings, seed),
        "greedy_gain": _greedy_gain([(b.greedy, a.greedy) for b, a in zip(before, after, strict=True)], settings, seed),
    }


Pairs = Sequence[tuple[float | None, float | None]]


def _gain(pairs: Pairs, settings: EvaluationSettings, seed: int) -> dict[str, float] | None:
    known = [(old, new) for old, new in pairs if old is not None and new is not None]
    if not known:
        return None
    old, new = zip(*known, strict=True)
    return paired_gain(old, new, settings.bootstrap, derive(seed, "bootstrap")).to_dict()


def _greedy_gain(pairs: Pairs, settings: EvaluationSettings, seed: int) -> dict[str, float] | None:
    interval = _gain(pairs, settings, seed)
    if interval is None:
        return None
    known = [(old == 1, new == 1) for old, new in pairs if old is not None and new is not None]
    return {**interval, "mcnemar_p": mcnemar([old for old, _ in known], [new for _, new in known])}


def _accuracies(results: Sequence[PromptResult]) -> dict[str, Any]:
    return {
        "pass_at_1": _mean(result.pass_at_1 for result in results),
        "greedy": _mean(result.greedy for result in results),
    }


def _slices(results: Sequence[PromptResult], key: Callable[[PromptResult], str]) -> dict[str, Any]:
    """Figures per value of ``key``."""
    parts: dict[str, list[PromptResult]] = defaultdict(list)
    for result in results:
        parts[key(result)].append(result)
    return {name: {"prompts": len(part), **_accuracies(part)} for name, part in parts.items()}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
