"""Lengths, repetition and variety of what was written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from components.health.signals.outcomes import means
from components.types import Group


def text_signals(groups: Sequence[Group]) -> dict[str, float]:
    """Lengths are in tokens; texts count as the same when they are equal."""
    pairs = [pair for group in groups for pair in zip(group.completions, group.scores, strict=True)]
    if not pairs:
        return {}
    lengths = sorted(len(completion.token_ids) for completion, _ in pairs)
    found = means(
        {
            "length_mean": lengths,
            "length_right": (len(c.token_ids) for c, s in pairs if s.accuracy == 1),
            "length_wrong": (len(c.token_ids) for c, s in pairs if s.accuracy is not None and s.accuracy < 1),
            "truncated_share": (c.finish_reason == "length" for c, _ in pairs),
            "repetition_share": (repetition(c.token_ids) for c, _ in pairs),
            "unique_share": (
                len({c.text for c in g.completions}) / len(g.completions) for g in groups if g.completions
            ),
        }
    )
    if "length_right" in found and "length_wrong" in found:
        found["length_gap"] = found["length_right"] - found["length_wrong"]
    counts = Counter(completion.text for completion, _ in pairs)
    found["top_completion_share"] = counts.most_common(1)[0][1] / len(pairs)
    return {**found, "length_p95": float(lengths[math.ceil(0.95 * len(lengths)) - 1])}


def repetition(tokens: Sequence[int], n: int = 3) -> float:
    """Share of n-grams that stood in the same completion before; 0 for what is too short to have one."""
    count = len(tokens) - n + 1
    if count < 1:
        return 0.0
    return 1 - len({tuple(tokens[i : i + n]) for i in range(count)}) / count
