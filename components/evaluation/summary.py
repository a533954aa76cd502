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
    gain, greedy_gain = _gains(before, after, settings, seed)
    k = settings.samples
    return {
        "prompts": len(before),
        "samples": settings.samples,
        "k": k,
        "sft": summarise(before, k),
        "trained": summarise(after, k),
        "gain": gain,
        "greedy_gain": greedy_gain,
    }


def against_champion(
    champion: Sequence[PromptResult], trained: Sequence[PromptResult], settings: EvaluationSettings, seed: int
) -> dict[str, Any]:
    """What `out/evaluation.json` holds besides, where there is a champion: its figures, and the gains over it.

    Raises:
        ValueError: the two sides are not the same prompts in the same order.
    """
    gain, greedy_gain = _gains(champion, trained, settings, seed)
    return {
        "champion": summarise(champion, settings.samples),
        "gain_over_champion": gain,
        "greedy_gain_over_champion": greedy_gain,
    }


Pairs = Sequence[tuple[float | None, float | None]]
Gain = dict[str, float] | None


def _gains(
    before: Sequence[PromptResult], after: Sequence[PromptResult], settings: EvaluationSettings, seed: int
) -> tuple[Gain, Gain]:
    """Sampled and greedy."""
    if [result.id for result in before] != [result.id for result in after]:
        raise ValueError("before and after must be the same prompts in the same order")
    pairs = list(zip(before, after, strict=True))
    sampled = _gain([(old.pass_at_1, new.pass_at_1) for old, new in pairs], settings, seed)
    return sampled, _greedy_gain([(old.greedy, new.greedy) for old, new in pairs], settings, seed)


def _gain(pairs: Pairs, settings: EvaluationSettings, seed: int) -> Gain:
    known = [(old, new) for old, new in pairs if old is not None and new is not None]
    if not known:
        return None
    old, new = zip(*known, strict=True)
    return paired_gain(old, new, settings.bootstrap, derive(seed, "bootstrap")).to_dict()


def _greedy_gain(pairs: Pairs, settings: EvaluationSettings, seed: int) -> Gain:
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
