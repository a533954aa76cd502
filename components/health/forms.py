"""Whether held-out completions lose their form: fewer of them end by themselves, can be judged, have a usual length and
surprisal, or a usual value of each reward part.

Each share is tested as an accuracy is (`components.health.falls`): bets on "it is at least the best lower bound so far,
less a tolerance" that may be looked at after every measurement (2203.03532). What is usual is said by the first
measurement. Entropy that falls and divergence that rises have no such test: both do so in healthy runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.health.falls import Falls
from components.health.sequential import Count
from components.types import Completion, Group, Score

USUAL = 0.95
"""Share of the completions of the first measurement that are usual, in each respect."""
PARTS = "part_"


class Forms:
    """The shares of a run over time; ``limits`` are the largest usual length, tokens, and surprisal, nats a token, and
    for each reward part its smallest usual value with the sign turned."""

    def __init__(self) -> None:
        self._falls = Falls()
        self.limits: dict[str, float] = {}

    def observe(self, step: int, groups: Sequence[Group]) -> dict[str, float]:
        """Evidence, nats, that a share has fallen, by its name, ``parts`` for the worst of the reward parts; nothing
        where nothing was measured."""
        completions = [completion for group in groups for completion in group.completions]
        scores = [score for group in groups for score in group.scores]
        if not completions:
            return {}
        shares = {
            "ended": _share([one.finish_reason != "length" for one in completions]),
            "scorable": _share([one.accuracy is not None for one in scores]),
        }
        for name, values in _statistics(completions, scores).items():
            sign = -1 if name.startswith(PARTS) else 1
            signed = [sign * value for value in values]
            limit = self.limits.setdefault(name, float(np.quantile(signed, USUAL, method="higher")))
            shares[name] = _share([value <= limit for value in signed])
        return _summary(self._falls.observe(step, shares))

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"falls": self._falls.state_dict(), "limits": dict(self.limits)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._falls.load_state_dict(state["falls"])
        self.limits = {name: float(limit) for name, limit in state["limits"].items()}


def _statistics(completions: Sequence[Completion], scores: Sequence[Score]) -> dict[str, list[float]]:
    """What is compared with the first measurement, by name; only what is known of some completion."""
    found = {
        "length": [float(len(one.token_ids)) for one in completions],
        "surprisal": [-sum(one.logprobs) / len(one.logprobs) for one in completions if one.logprobs],
    }
    for score in scores:
        for name, value in score.parts.items():
            found.setdefault(PARTS + name, []).append(value)
    finite = {name: [value for value in values if math.isfinite(value)] for name, values in found.items()}
    return {name: values for name, values in finite.items() if values}


def _share(these: Sequence[bool]) -> Count:
    return Count(sum(these), len(these))


def _summary(found: Mapping[str, float]) -> dict[str, float]:
    """The evidence with that of the worst reward part in place of all of them."""
    parts = [nats for name, nats in found.items() if name.startswith(PARTS)]
    others = {name: nats for name, nats in found.items() if not name.startswith(PARTS)}
    return others | ({"parts": max(parts)} if parts else {})
