"""When a fault is there, and what of a step it touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from components.seeds import derive

Time = Literal["constant", "drifting", "bursting"]
Scope = Literal["all", "family", "replica"]
TIMES: tuple[Time, ...] = get_args(Time)
SCOPES: tuple[Scope, ...] = get_args(Scope)
RISE = 10
"""Steps in which a drifting fault grows to its size, unless the ground says otherwise."""
BURST, QUIET = 2, 3
"""Steps of a burst, and between two."""


@dataclass(frozen=True)
class Form:
    """``time``: from its beginning on, growing, or now and then. ``scope``: everything, one family of prompts, or every
    second prompt or row, as one of two servers would. ``rise``: steps in which a drifting fault grows to its size."""

    time: Time
    scope: Scope
    rise: int = RISE

    def strength(self, since: int) -> float:
        """Share of the fault's size, ``since`` steps after it began; 0 before."""
        if since < 0:
            return 0.0
        match self.time:
            case "constant":
                return 1.0
            case "drifting":
                return min(1.0, (since + 1) / self.rise)
            case "bursting":
                return float(since % (BURST + QUIET) < BURST)

    def touches(self, place: int, family: str, chosen: str) -> bool:
        """Whether the prompt at a place of a step, of this family, is touched."""
        match self.scope:
            case "all":
                return True
            case "family":
                return family == chosen
            case "replica":
                return place % 2 == 0


def hit(strength: float, seed: int, *what: str | int) -> bool:
    """A seeded coin that comes down with this probability."""
    return derive(seed, "hit", *what) % 10**6 < strength * 10**6
