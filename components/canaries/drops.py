"""How far a set has fallen, probe by probe, and whether that is too far."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from components.canaries.figures import error
from components.canaries.items import ProbeSet
from components.config.canaries import CanarySettings
from components.types import GateResult

Scores = Sequence[float | None]
Z = 1.959964
"""Of a 95 % interval."""
POWER = Z + 0.8416212
"""Standard errors of a drop that 95 % tests find four times out of five."""
NONE_OF_N = 3.0
"""With n probes of which none has changed, a fall of 3/n cannot be ruled out at 95 % (the rule of three)."""
GRAVITY: tuple[GateResult, ...] = ("pass", "inconclusive", "fail")
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest fall that is put up with, and how many standard errors a fall must have to count as one."""

    max_drop: float
    max_drop_se: float


def score_limit(settings: CanarySettings) -> Limit:
    """How far the score of a set may fall, as a share."""
    return Limit(settings.max_drop, settings.max_drop_se)


def margin_limit(settings: CanarySettings) -> Limit:
    """How far its margin may fall, in nats; as far as it likes where the settings do not say."""
    return Limit(math.inf if settings.max_margin_drop is None else settings.max_margin_drop, settings.max_drop_se)


@dataclass(frozen=True, slots=True)
class Drop:
    """The mean fall of a figure from one measurement to a later one, over the probes judged in both; negative is a
    rise. ``lost`` are the probes that had the figure and have none any more: one of them is a fall beyond any limit.
    ``detectable`` is the smallest fall that so many probes show."""

    mean: float
    se: float
    n: int
    stratum: str = ""
    lost: int = 0

    @property
    def far(self) -> float:
        """The fall that a limit is held against."""
        return math.inf if self.lost else self.mean

    @property
    def detectable(self) -> float:
        return max(POWER * self.se, NONE_OF_N / self.n) if self.n else math.inf

    def beyond(self, limit: Limit) -> bool:
        """Whether it is a fall beyond the limit, and measurably one: how much one probe alone varies is not known."""
        sure = self.lost or (self.n > 1 and self.mean >= limit.max_drop_se * self.se)
        return bool(sure) and self.far > limit.max_drop + ROUNDING

    def verdict(self, limit: Limit) -> GateResult:
        """``inconclusive``: beyond the limit and too few probes to be sure, or too few to see such a fall."""
        if not self.n:
            return "inconclusive"
        if self.beyond(limit):
            return "fail"
        unsure = self.mean > limit.max_drop + ROUNDING or self.detectable > limit.max_drop + ROUNDING
        return "inconclusive" if unsure else "pass"

    def to_dict(self) -> dict[str, Any]:
        low, high = (self.mean - Z * self.se, self.mean + Z * self.se) if self.n > 1 else (None, None)
        shown = {"mean": self.mean, "se": self.se, "low": low, "high": high}
        known = {"n": self.n, "lost": self.lost, "detectable": self.detectable if self.n else None}
        return {**shown, **known, "stratum": self.stratum}


def falls(probes: ProbeSet, before: Scores, after: Scores) -> list[Drop]:
    """The drop within every stratum: what falls in one is not made good by a rise in another."""
    strata: dict[str, list[float]] = defaultdict(list)
    for probe, old, new in zip(probes.probes, before, after, strict=True):
        fallen = strata[probe.stratum]
        if old is not None and new is not None:
            fallen.append(old - new)
    return [
        Drop(fmean(fallen) if fallen else 0.0, error(fallen) or 0.0, len(fallen), stratum)
        for stratum, fallen in sorted(strata.items())
    ]


def margin_falls(probes: ProbeSet, before: Scores, after: Scores) -> list[Drop]:
    """The same of margins. A probe whose margin is no finite number any more has lost it: the policy is broken, or an
    answer has become impossible."""
    lost = Counter(
        probe.stratum
        for probe, old, new in zip(probes.probes, before, after, strict=True)
        if old is not None and new is None
    )
    return [replace(drop, lost=lost[drop.stratum]) for drop in falls(probes, before, after)]


def gravest(drops: Sequence[Drop], limit: Limit) -> Drop:
    """The one with the worst verdict; among those of one verdict the largest."""
    return max(drops, key=lambda drop: (GRAVITY.index(drop.verdict(limit)), drop.mean))
