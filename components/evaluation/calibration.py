"""The figures of one policy by kind of prompt, and what lengths and agreement among samples say about being right. A
slice of few prompts is called small: its figures are anecdotes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from components.evaluation.passing import accuracies
from components.evaluation.results import PromptResult
from components.evaluation.statistics import mean

BINS = 10
Completion = tuple[int, float | None, bool]
SLICES: Mapping[str, Callable[[PromptResult], str]] = {
    "families": lambda result: result.family,
    "difficulty": lambda result: f"{result.difficulty:g}",
    "prompt_length": lambda result: octave(result.prompt_tokens),
    "sources": lambda result: result.source,
}
"""Key of the figures -> the slice that a prompt belongs to."""


def calibration(results: Sequence[PromptResult], small: int) -> dict[str, Any]:
    """``length``, ``truncation`` and ``agreement``; over the samples, or the greedy completions of a suite without."""
    completions = [one for result in results for one in result.completions]
    return {
        "length": by_length(completions, small),
        "truncation": truncation(completions),
        "agreement": agreement(results, small),
    }


def by_length(completions: Sequence[Completion], small: int) -> dict[str, Any]:
    """Accuracy by length of the completion in tokens, and the mean length of right and of wrong ones.

    That long completions are wrong more often says nothing about what length does: hard prompts get long answers.
    """
    bins: dict[str, list[float]] = defaultdict(list)
    for length, accuracy, _ in sorted(completions, key=lambda one: one[0]):
        if accuracy is not None:
            bins[octave(length)].append(accuracy)
    return {
        "bins": [
            {"tokens": name, "completions": len(part), "small": len(part) < small, "accuracy": fmean(part)}
            for name, part in bins.items()
        ],
        "right_mean": mean(length for length, accuracy, _ in completions if accuracy == 1),
        "wrong_mean": mean(length for length, accuracy, _ in completions if accuracy is not None and accuracy != 1),
    }


def truncation(completions: Sequence[Completion]) -> dict[str, Any]:
    """What is known of completions that the length limit cut.

    ``accuracy`` counts them as judged, which is mostly wrong for want of an answer. With more room they might have come
    to any end, so the accuracy without a limit lies between ``if_wrong`` and ``if_right``; nothing narrower can be
    known from these samples (bounds of Manski 1990). ``of_finished`` leaves them out and flatters: what is cut is what
    is hard.
    """
    known = [(accuracy, cut) for _, accuracy, cut in completions if accuracy is not None]
    return {
        "completions": len(completions),
        "truncated": sum(cut for _, _, cut in completions),
        "share": mean(float(cut) for _, _, cut in completions),
        "accuracy": mean(accuracy for accuracy, _ in known),
        "of_finished": mean(accuracy for accuracy, cut in known if not cut),
        "of_truncated": mean(accuracy for accuracy, cut in known if cut),
        "if_wrong": mean(0.0 if cut else accuracy for accuracy, cut in known),
        "if_right": mean(1.0 if cut else accuracy for accuracy, cut in known),
    }


def agreement(results: Sequence[PromptResult], small: int) -> dict[str, Any] | None:
    """How well the share of samples that agree with the majority predicts that the majority is right.

    ``ece`` is the expected calibration error over ten bins of equal width (1706.04599): the mean distance of agreement
    and accuracy, weighted by prompts. ``ece_signed`` is mean agreement minus accuracy: above 0 the policy agrees with
    itself more than it is right. With few samples the majority's share overstates agreement (of two samples it is never
    below one half), so figures compare only at equal numbers of samples. None where no prompt has two votes.
    """
    pairs = [_majority(result) for result in results if len(result.votes) > 1]
    if not pairs:
        return None
    bins: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for share, accuracy in pairs:
        bins[min(BINS - 1, int(share * BINS))].append((share, accuracy))
    rows = [
        {
            "from": number / BINS,
            "to": (number + 1) / BINS,
            "prompts": len(part),
            "small": len(part) < small,
            "agreement": fmean(share for share, _ in part),
            "accuracy": fmean(accuracy for _, accuracy in part),
        }
        for number, part in sorted(bins.items())
    ]
    return {
        "prompts": len(pairs),
        "ece": sum(row["prompts"] * abs(row["agreement"] - row["accuracy"]) for row in rows) / len(pairs),
        "ece_signed": fmean(share for share, _ in pairs) - fmean(accuracy for _, accuracy in pairs),
        "bins": rows,
    }


def _majority(result: PromptResult) -> tuple[float, float]:
    """Share of the samples with the most frequent answer, and its accuracy; the mean of those that tie."""
    counts = Counter(answer for answer, _ in result.votes if answer is not None)
    most = max(counts.values(), default=0)
    winners = {answer for answer, count in counts.items() if count == most}
    right = [float(accuracy == 1) for answer, accuracy in result.votes if answer in winners]
    return most / len(result.votes), fmean(right) if right else 0.0


def slices(results: Sequence[PromptResult], small: int) -> dict[str, Any]:
    """For each kind of slice, name -> prompts, pass@1, greedy accuracy, and whether it has fewer than ``small``."""
    return {kind: _figures(results, of, small) for kind, of in SLICES.items()}


def _figures(results: Sequence[PromptResult], of: Callable[[PromptResult], str], small: int) -> dict[str, Any]:
    parts = {name: [results[i] for i in places] for name, places in _places(results, of).items()}
    return {
        name: {"prompts": len(part), "small": len(part) < small, **accuracies(part)} for name, part in parts.items()
    }


def pairs(
    before: Sequence[PromptResult], after: Sequence[PromptResult]
) -> Iterator[tuple[str, str, list[PromptResult], list[PromptResult]]]:
    """Kind, name and the two sides of every slice, of the same prompts in the same order."""
    for kind, of in SLICES.items():
        for name, places in _places(after, of).items():
            yield kind, name, [before[i] for i in places], [after[i] for i in places]


def _places(results: Sequence[PromptResult], of: Callable[[PromptResult], str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, result in enumerate(results):
        places[of(result)].append(place)
    return places


def octave(tokens: int) -> str:
    """The bin of a length: 0, 1, 2-3, 4-7, 8-15 ... The same in every run, so that runs compare."""
    low = 1 << (tokens.bit_length() - 1) if tokens else 0
    return f"{low}" if low < 2 else f"{low}-{2 * low - 1}"
