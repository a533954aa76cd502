"""How often is a policy right: in one try, in one of k, by the majority of k?

Right is an accuracy of exactly 1; partial credit counts for pass@1 alone. Unscorable samples are left out, and a prompt
with fewer than k scorable ones has no figure for that k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any

from components.evaluation.statistics import mean

if TYPE_CHECKING:
    from components.evaluation.results import PromptResult

Table = dict[tuple[int, int], int]
"""Answers drawn so far, and how many classes tie -> ways."""


def pass_at_k(samples: int, right: int, k: int) -> float:
    """Unbiased estimate of P(at least one of k samples is right) from ``right`` of ``samples`` (2107.03374):
    1 - C(n - c, k) / C(n, k).

    Raises:
        ValueError: fewer than k samples, or more right ones than samples.
    """
    if not 1 <= k <= samples or not 0 <= right <= samples:
        raise ValueError(f"pass@{k} is undefined for {right} right of {samples} samples")
    return 1 - comb(samples - right, k) / comb(samples, k)


def maj_at_k(votes: Sequence[tuple[str | None, float]], k: int) -> float:
    """Unbiased estimate of the accuracy of the majority among k samples (self-consistency, 2203.11171).

    The mean over all subsets of k of the ``votes`` (final answer, accuracy). The answer that is given most often in a
    subset wins; of several that tie each wins with equal chance. A sample without an answer (None) has no vote, and a
    subset without votes is wrong. Samples that share an answer and not their accuracy (the verifier is stricter than
    the normal form) count with their mean. maj@1 is pass@1, provided that what states no answer is never right.

    Raises:
        ValueError: fewer than k votes.
    """
    if not 1 <= k <= len(votes):
        raise ValueError(f"maj@{k} is undefined for {len(votes)} samples")
    counts = Counter(answer for answer, _ in votes if answer is not None)
    chances = _winning(tuple(sorted(counts.values())), len(votes) - counts.total(), k)
    return sum(
        chances[count] * sum(accuracy for given, accuracy in votes if given == answer) / count
        for answer, count in counts.items()
    )


@lru_cache(maxsize=4096)
def _winning(classes: tuple[int, ...], silent: int, k: int) -> dict[int, float]:
    """Size of a class of equal answers -> the chance that one class of that size wins a subset of k."""
    subsets = comb(sum(classes) + silent, k)
    chances = {}
    for size in set(classes):
        others = list(classes)
        others.remove(size)
        chances[size] = sum(
            comb(size, won) * ways / (1 + ties) / subsets
            for won in range(1, min(size, k) + 1)
            for (drawn, ties), ways in _rest(others, silent, won, k - won).items()
            if drawn == k - won
        )
    return chances


def _rest(classes: Sequence[int], silent: int, most: int, total: int) -> Table:
    """Ways to draw up to ``total`` from the other classes, at most ``most`` of each, and from the silent samples."""
    table: Table = {(drawn, 0): comb(silent, drawn) for drawn in range(min(silent, total) + 1)}
    for size in classes:
        extended: Table = {}
        for (drawn, ties), ways in table.items():
            for taken in range(min(size, most, total - drawn) + 1):
                key = drawn + taken, ties + (taken == most)
                extended[key] = extended.get(key, 0) + ways * comb(size, taken)
        table = extended
    return table


def accuracies(results: Sequence[PromptResult]) -> dict[str, Any]:
    """Sampled pass@1 and greedy accuracy, as means over prompts."""
    return {
        "pass_at_1": mean(result.pass_at_1 for result in results),
        "greedy": mean(result.greedy for result in results),
    }


def comparable(sides: Sequence[Sequence[PromptResult]], k: int) -> list[list[PromptResult]]:
    """Of every side the prompts that have k scorable samples on all of them, which are the same ones."""
    rows = [row for row in zip(*sides, strict=True) if all(len(result.scorable) >= k for result in row)]
    return [list(side) for side in zip(*rows, strict=True)] if rows else [[] for _ in sides]


def passing(results: Sequence[PromptResult], ks: Sequence[int]) -> dict[str, Any]:
    """``pass_at`` and ``maj_at``: a figure for every k, as text; None where no prompt has one."""
    return {
        "pass_at": {str(k): mean(_pass_at(result, k) for result in results) for k in ks},
        "maj_at": {str(k): mean(_maj_at(result, k) for result in results) for k in ks},
    }


def _pass_at(result: PromptResult, k: int) -> float | None:
    values = result.scorable
    return pass_at_k(len(values), sum(value == 1 for value in values), k) if len(values) >= k else None


def _maj_at(result: PromptResult, k: int) -> float | None:
    votes = [(answer, float(accuracy == 1)) for answer, accuracy in result.votes]
    return maj_at_k(votes, k) if len(votes) >= k else None
