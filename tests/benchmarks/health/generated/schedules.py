"""Prompts of the split that are drawn in another way than the schedule says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from components.scheduling import Schedule
from components.seeds import derive
from components.types import Prompt
from tests.benchmarks.health.faults.base import AroundSchedule
from tests.benchmarks.health.generated.base import Generated


class Misdrawn(Generated):
    """``size`` is the share of a draw that is replaced."""

    part = "schedule"

    def schedule(self, schedule: Schedule) -> Schedule:
        return _Misdrawing(schedule, self)

    @abstractmethod
    def pool(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        """What replacements are drawn from."""


class _Misdrawing(AroundSchedule):
    def __init__(self, inner: Schedule, fault: Misdrawn) -> None:
        super().__init__(inner)
        self._fault, self._draws = fault, 0

    def next(self, count: int) -> list[Prompt]:
        self._draws += 1
        drawn, fault = list(self.inner.next(count)), self._fault
        pool = fault.pool(
            [one for one in self.inner.prompts if fault.form.scope != "family" or one.family == fault.family]
        )
        return [
            pool[derive(fault.seed, self._draws, place) % len(pool)]
            if fault.touches(place, fault.family) and fault.hits(fault.size, self._draws, place)
            else one
            for place, one in enumerate(drawn)
        ]


class Standing(Misdrawn):
    """The same few prompts step after step."""

    sizes = (0.5, 1.0)

    def pool(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        first = derive(self.seed, "standing") % max(1, len(prompts) - 8)
        return prompts[first : first + 8]


class OnePrompt(Misdrawn):
    """One prompt again and again."""

    sizes = (0.5, 1.0)

    def pool(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return [prompts[derive(self.seed, "one") % len(prompts)]]


class OneFamily(Misdrawn):
    """Prompts of one family alone."""

    sizes = (0.5, 1.0)
    scopes = ("all",)

    def pool(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return [one for one in prompts if one.family == self.family]


class Hardest(Misdrawn):
    """The hardest tenth by the source's own level."""

    sizes = (0.5, 1.0)

    def pool(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return sorted(prompts, key=lambda one: one.difficulty)[-max(1, len(prompts) // 10) :]


class Easiest(Misdrawn):
    """The easiest tenth."""

    sizes = (0.5, 1.0)

    def pool(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        return sorted(prompts, key=lambda one: one.difficulty)[: max(1, len(prompts) // 10)]


SCHEDULES = (Standing, OnePrompt, OneFamily, Hardest, Easiest)
