"""Whether completions of one prompt are drawn independently: how often they repeat follows from their probabilities.

The first completion of a group has, by the sampler's own log-probabilities, a probability p. Each other one equals it
with a probability of p, so copies that a cache, a stuck seed or a broken server returns are evidence (betting,
2010.09686), whatever the policy has become.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from components.health.sequential import BETS, Count, bet, evidence
from components.types import Group

RAREST = 1e-6
"""Probabilities below it are taken for it: a log-probability that is off must not prove everything by itself."""


PROVEN = 9.2
"""Nats; while completions are drawn independently they are reached once in 10,000 steps, or less often."""


class Draws:
    """The bets, by server; -1 stands for completions that no server sampled."""

    def __init__(self) -> None:
        self._stakes: dict[int, list[float]] = {}

    def observe(self, groups: Sequence[Group]) -> dict[int, float]:
        """Evidence, nats, by server, that completions repeat more often than they should."""
        factors: dict[int, list[float]] = {}
        for group in groups:
            for server, count, null in _counts(group):
                before = factors.setdefault(server, [0.0] * len(BETS))
                factors[server] = [one + more for one, more in zip(before, bet(count, null), strict=True)]
        for server, found in factors.items():
            old = self._stakes.get(server, [0.0] * len(BETS))
            self._stakes[server] = [max(stake, 0.0) + factor for stake, factor in zip(old, found, strict=True)]
        shared = math.log(max(1, len(self._stakes)))
        return {server: evidence(stakes) - shared for server, stakes in self._stakes.items()}

    def forget(self, server: int) -> None:
        """A server samples no more."""
        self._stakes.pop(server, None)

    @property
    def worst(self) -> int:
        """The server with the most evidence."""
        return max(self._stakes, key=lambda server: evidence(self._stakes[server]), default=-1)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs, as JSON values."""
        return {str(server): list(stakes) for server, stakes in self._stakes.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._stakes = {int(server): list(map(float, stakes)) for server, stakes in state.items()}


def _counts(group: Group) -> list[tuple[int, Count, float]]:
    """By server: how many of its completions of this prompt differ from its first, and the share that should."""
    found = []
    for server in sorted({completion.server for completion in group.completions}):
        first, *others = [completion for completion in group.completions if completion.server == server]
        usual = math.exp(min(0.0, sum(first.logprobs))) if all(map(math.isfinite, first.logprobs)) else 1.0
        if others and usual < 1 - RAREST:
            differ = sum(other.token_ids != first.token_ids for other in others)
            found.append((server, Count(differ, len(others)), 1 - max(RAREST, usual)))
    return found
