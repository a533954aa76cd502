"""Whether held-out completions lose their form: fewer of them end by themselves, can be judged, or have a usual length.

Each share is tested as an accuracy is (`components.health.falls`): bets on "it is at least the best lower bound so far,
less a tolerance" that may be looked at after every measurement (2203.03532).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.health.falls import Falls
from components.health.sequential import Count
from components.types import Group

USUAL = 0.95
"""Quantile of the lengths of the first measurement that longer completions than are unusual."""


class Forms:
    """The shares of a run over time; ``usual`` is the longest usual completion, tokens."""

    def __init__(self) -> None:
        self._falls, self.usual = Falls(), 0

    def observe(self, step: int, groups: Sequence[Group]) -> dict[str, float]:
        """Evidence, nats, that a share has fallen, by its name; nothing where nothing was measured."""
        completions = [completion for group in groups for completion in group.completions]
        if not completions:
            return {}
        lengths = [len(completion.token_ids) for completion in completions]
        self.usual = self.usual or math.ceil(np.quantile(lengths, USUAL))
        scores, of = [score for group in groups for score in group.scores], len(completions)
        shares = {
            "ended": Count(sum(completion.finish_reason != "length" for completion in completions), of),
            "scorable": Count(sum(score.accuracy is not None for score in scores), len(scores)),
            "usual_length": Count(sum(length <= self.usual for length in lengths), of),
        }
        return self._falls.observe(step, shares)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {"falls": self._falls.state_dict(), "usual": self.usual}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._falls.load_state_dict(state["falls"])
        self.usual = int(state["usual"])
