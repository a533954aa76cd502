"""Where a batch is cut into passes. Padded: little padding, few passes. Packed: whole groups. None above its budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int64]

PASS = 256
"""Padded tokens that cost about as much as one more pass: cuts that save fewer are not made."""
SEATS = 4
"""Padded tokens that a packed pass may have for each one that it may compute: one long response among short ones would
make attention as wide for all of them."""


def group_cuts(groups: Lengths, prompts: Lengths, responses: Lengths, max_tokens: int) -> list[Lengths]:
    """Rows of each pass where padding costs little and a group's prompt is computed once: whole groups.

    A pass has at most ``max_tokens`` of what is computed, and ``SEATS`` times as many with the padding that attention
    has. A group that has more is cut between its rows, and its prompt is computed once for each part.

    Args:
        groups: Number of each row's group ``[B]``.
        prompts: Tokens of each row's prompt ``[B]``.
        responses: Tokens of each row's response ``[B]``.
    """
    found: list[list[int]] = []
    for number in np.unique(groups):
        rows = np.flatnonzero(groups == number).tolist()
        if found and _fits([*found[-1], *rows], groups, prompts, responses, max_tokens):
            found[-1] += rows
            continue
        found.append([])
        for row in rows:
            if found[-1] and not _fits([*found[-1], row], groups, prompts, responses, max_tokens):
                found.append([])
            found[-1].append(row)
    return [np.array(rows, dtype=np.int64) for rows in found]


def _fits(rows: list[int], groups: Lengths, prompts: Lengths, responses: Lengths, max_tokens: int) -> bool:
    """Whether one pass may have these rows."""
    first = np.unique(groups[rows], return_index=True)[1]
    computed = int(prompts[rows][first].sum() + responses[rows].sum())
    seats = len(rows) * int(prompts[rows].max() + responses[rows].max())
    return computed <= max_tokens and seats <= SEATS * max_tokens


def cuts(prompts: Lengths, responses: Lengths, max_tokens: int) -> list[slice]:
    """Runs of rows, in order, of the least padded tokens and passes together.

    A run is as wide as its longest prompt and its longest response, and has at most ``max_tokens`` with all its padding
    (or one row). Rows of like length should stand together.

    Args:
        prompts: Tokens of each row's prompt ``[B]``.
        responses: Tokens of each row's response ``[B]``.
    """
    rows = len(prompts)
    least = np.zeros(rows + 1)  # cost of the first j rows
    starts = np.zeros(rows + 1, dtype=np.int64)  # of the run that ends with row j
    most = max(1, max_tokens // max(1, int((prompts + responses).min(initial=max_tokens))))  # rows that a run can have
    for end in range(1, rows + 1):
        back = slice(max(0, end - most), end)
        widths = np.maximum.accumulate(prompts[back][::-1]) + np.maximum.accumulate(responses[back][::-1])
        tokens = widths * np.arange(1, len(widths) + 1)  # of the last row, the last two rows, ...
        fitting = max(1, int(np.searchsorted(tokens, max_tokens, side="right")))
        costs = least[back][::-1][:fitting] + tokens[:fitting] + PASS
        best = int(costs.argmin())
        least[end], starts[end] = costs[best], end - 1 - best
    found = []
    end = rows
    while end:
        found.append(slice(int(starts[end]), end))
        end = int(starts[end])
    return found[::-1]


def runs(order: Sequence[int], tokens: Callable[[Sequence[int]], int], max_tokens: int) -> Iterator[list[int]]:
    """Runs of the numbers of rows, in this order, each as long as its ``tokens`` allow: at most ``max_tokens``, or one
    row."""
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or tokens(order[start : end + 1]) > max_tokens:
            yield list(order[start:end])
            start = end
