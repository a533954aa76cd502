"""What an evaluation found, as rows of text for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEADS = {"sft": "SFT", "champion": "champion"}
"""What the trained policy may be compared with, by its key in the evaluation."""


def compared(evaluation: Mapping[str, Any], side: str) -> list[tuple[str, str, str, str]]:
    """A row a measure: its name, that of ``side``, that of the trained policy, and the gain with its interval."""
    over = "" if side == "sft" else f"_over_{side}"
    measures = (("pass@1", "pass_at_1", "gain"), ("greedy", "greedy", "greedy_gain"))
    return [
        (
            label,
            _share(evaluation[side][key]),
            _share(evaluation["trained"][key]),
            _interval(evaluation[f"{gain}{over}"]),
        )
        for label, key, gain in measures
    ]


def _share(value: float | None) -> str:
    """A share in percent; a dash where nothing could be scored."""
    return "-" if value is None else f"{value:.1%}"


def _interval(gain: Mapping[str, float] | None) -> str:
    if gain is None:
        return "-"
    mean, low, high = (100 * gain[key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f} points ({gain['confidence']:.0%} interval {low:+.1f} to {high:+.1f})"
