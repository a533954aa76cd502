"""Every number that a step is judged by; pure functions of what the step sampled, trained and measured.

- `catalogue` — `SIGNALS`: unit, range, cost and source of each
- `groups` — accuracies, rewards, groups that carry no gradient; lengths, repetition, variety; which questions the step
  had, and jumps in how well they are answered; the dev split, and the gap to it on like prompts

What the learner measures is in `components.learner.signals`, what probe sets show in `components.canaries.baseline`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from components.health.signals.catalogue import PREFIXES, SIGNALS, Signal, find_signal
from components.health.signals.groups import (
    Jumps,
    dev_signals,
    like_gap,
    outcome_signals,
    question_signals,
    text_signals,
)
from components.types import Group

__all__ = ["PREFIXES", "SIGNALS", "Jumps", "Signal", "dev_signals", "find_signal", "like_gap", "step_signals"]


def step_signals(
    sampled: Sequence[Group], trained: Sequence[Group], update: Mapping[str, float], attempts: int
) -> dict[str, float]:
    """Every signal that exists in a step.

    Args:
        sampled: all groups drawn in the step, before any filter; the group signals describe these.
        trained: the groups in the update.
        update: what learner, schedule, dev evaluation and canaries measured. A value that is not finite is left out
            and counted in ``nonfinite``.
        attempts: batches of prompts drawn.

    Raises:
        ValueError: ``update`` holds a name that `SIGNALS` does not describe.
    """
    unknown = sorted(name for name in update if find_signal(name) is None)
    if unknown:
        raise ValueError(f"undocumented signals: {', '.join(unknown)}; describe them in SIGNALS")
    finite = {name: float(value) for name, value in update.items() if math.isfinite(value)}
    return {
        **outcome_signals(sampled),
        **text_signals(sampled),
        **question_signals(sampled),
        "completions_sampled": float(sum(len(group.completions) for group in sampled)),
        "groups_sampled": float(len(sampled)),
        "groups_trained": float(len(trained)),
        "attempts": float(attempts),
        **finite,
        "nonfinite": finite.get("nonfinite", 0.0) + len(update) - len(finite),
    }
