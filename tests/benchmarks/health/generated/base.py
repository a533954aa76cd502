"""A mechanism with a form, an onset and a size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from components.seeds import derive
from components.types import Prompt
from tests.benchmarks.health.faults.base import Clock, Fault
from tests.benchmarks.health.generated.forms import SCOPES, TIMES, Form, Scope, Time, hit

if TYPE_CHECKING:
    from tests.benchmarks.health.grounds import Ground

ONSETS = range(4, 20)
"""Steps in which a fault may begin."""


class Generated(Fault):
    """What breaks a run, in one of its ways. ``part`` is what of the run is broken, ``sizes`` from small to large.

    Kinds that are ``held_back`` were written apart from the rules, and no rule may be designed on them.
    """

    part: ClassVar[str]
    sizes: ClassVar[tuple[float, ...]]
    scopes: ClassVar[tuple[Scope, ...]] = SCOPES
    times: ClassVar[tuple[Time, ...]] = TIMES
    held_back: ClassVar[bool] = False

    def __init__(self, seed: int, form: Form, size: float, clock: Clock | None = None) -> None:
        super().__init__(seed, clock)
        self.form, self.size, self.family = form, size, ""
        self.excluded = False  # the server that is broken is not used any more
        self.begins = ONSETS[derive(seed, "onset") % len(ONSETS)]

    def fitted(self, ground: Ground) -> Self:
        self.begins = ground.onsets[derive(self.seed, "onset") % len(ground.onsets)]
        self.form = replace(self.form, rise=ground.rise)
        return self

    @property
    def strength(self) -> float:
        """Share of the size in the present step."""
        return self.form.strength(self.clock.step - self.begins)

    def prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        families = sorted({prompt.family for prompt in prompts})
        self.family = families[derive(self.seed, "family") % len(families)]
        return prompts

    def touches(self, place: int, family: str = "") -> bool:
        return not self.excluded and self.form.touches(place, family, self.family)

    @property
    def of_a_server(self) -> bool:
        """Whether it is one of two servers that is broken, which the run could do without."""
        return self.part == "sampler" and self.form.scope == "replica"

    def hits(self, chance: float, *what: str | int) -> bool:
        """A seeded coin, with the chance times the strength of the present step."""
        return hit(chance * self.strength, self.seed, *what)
