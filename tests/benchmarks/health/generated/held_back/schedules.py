"""Loaders that repeat, skip or order what they should not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from components.scheduling import Schedule
from components.seeds import derive
from components.types import Prompt
from tests.benchmarks.health.faults.base import AroundSchedule
from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.base import HeldBack


class Redrawn(HeldBack, Generated):
    """A draw becomes another one, as a whole or in every second place."""

    part = "schedule"
    scopes = ("all", "replica")

    def schedule(self, schedule: Schedule) -> Schedule:
        return _Redrawing(schedule, self)  # type: ignore[return-value]

    @abstractmethod
    def redrawn(self, drawn: Sequence[Prompt], prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        """What is served instead of a draw; ``prompts`` are the split."""


class _Redrawing(AroundSchedule):
    def __init__(self, inner: Schedule, fault: Redrawn) -> None:
        super().__init__(inner)
        self._fault = fault

    def next(self, count: int) -> list[Prompt]:
        drawn, fault = list(self.inner.next(count)), self._fault
        if not fault.strength:
            return drawn
        served = fault.redrawn(drawn, self.inner.prompts)
        return [served[place] if fault.touches(place) else one for place, one in enumerate(drawn)]


class Stuttering(Redrawn):
    """Each draw is served ``size`` times before the next one."""

    sizes = (2, 5, 20)
    _held: Sequence[Prompt] = ()
    _served = 0

    def redrawn(self, drawn: Sequence[Prompt], prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        self._served += 1
        if not self._held or self._served >= 1 + (self.size - 1) * self.strength:
            self._held, self._served = drawn, 0
        return self._held


class Unreached(Redrawn):
    """A share of the split is never reached; what was to come from it comes from the rest."""

    sizes = (0.8, 0.95, 0.99)

    def redrawn(self, drawn: Sequence[Prompt], prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        order = sorted(prompts, key=lambda one: derive(self.seed, "reached", one.id))
        reached = order[: max(1, round(len(order) * (1 - self.size * self.strength)))]
        known = {one.id for one in reached}
        return [one if one.id in known else reached[derive(self.seed, one.id) % len(reached)] for one in drawn]


class TwinWorkers(Redrawn):
    """``size`` workers of the loader share a seed, so that a draw is that of one of them, several times."""

    sizes = (2, 4, 8)

    def redrawn(self, drawn: Sequence[Prompt], prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        workers = 1 + (self.size - 1) * self.strength
        own = max(1, round(len(drawn) / workers))
        return [drawn[place % own] for place in range(len(drawn))]


class InOrder(Redrawn):
    """The split in the order of its lengths, not shuffled, from the beginning on."""

    sizes = (0.5, 1.0)
    _next = 0

    def redrawn(self, drawn: Sequence[Prompt], prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        order = sorted(prompts, key=lambda one: (len(one.text), one.id))
        served = [order[(self._next + place) % len(order)] for place in range(len(drawn))]
        self._next += len(drawn)
        return [
            new if self.hits(self.size, self._next, place) else old
            for place, (old, new) in enumerate(zip(drawn, served, strict=True))
        ]


class MissingShard(Redrawn):
    """Prompts of one family are not there any more; those of others are served in their stead."""

    sizes = (0.5, 1.0)

    def redrawn(self, drawn: Sequence[Prompt], prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        rest = [one for one in prompts if one.family != self.family]
        return [
            rest[derive(self.seed, one.id) % len(rest)]
            if rest and one.family == self.family and self.hits(self.size, one.id)
            else one
            for one in drawn
        ]


SCHEDULES = (Stuttering, Unreached, TwinWorkers, InOrder, MissingShard)
