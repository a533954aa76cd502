"""Where a padded batch is cut into passes: little padding, few passes, none above its budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int64]

PASS = 256
"""Padded tokens that cost about as much as one more pass: cuts that save fewer are not made."""


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
