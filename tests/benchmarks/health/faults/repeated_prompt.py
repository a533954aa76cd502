"""One prompt again and again.

In the field: a data set in which one item stands many times over, by accident or on purpose; distinct ids hide it. One
mislabelled item is enough to turn a policy by GRPO (arXiv 2606.10931).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from components.scheduling import Schedule
from components.seeds import derive
from components.types import Prompt
from tests.benchmarks.health.faults.base import AroundSchedule, Clock, Fault


class RepeatedPrompt(Fault):
    """From the step on a ``share`` of every draw are copies of one prompt, each with an id of its own."""

    late: ClassVar[bool] = True
    share: ClassVar[float]

    def __init__(self, seed: int, clock: Clock | None = None) -> None:
        super().__init__(seed, clock)
        self._chosen: Prompt | None = None

    def prompts(self, prompts: Sequence[Prompt]) -> Sequence[Prompt]:
        self._chosen = self.choose(prompts)
        return prompts

    def choose(self, prompts: Sequence[Prompt]) -> Prompt:
        """The one that is repeated: of those that the teacher gets wrong, if there are any, drawn by seed."""
        open_ones = [p for p in prompts if p.demonstration != p.solution] or list(prompts)
        return open_ones[derive(self.seed, "repeated") % len(open_ones)]

    def schedule(self, schedule: Schedule) -> Schedule:
        if self._chosen is None:
            raise ValueError("the prompt is drawn by `prompts`, which comes first")
        return _Flooded(schedule, self, self._chosen)


class DuplicateFlood(RepeatedPrompt):
    """Three quarters of every draw are one prompt, rightly labelled."""

    share = 0.75


class OneBiased(RepeatedPrompt):
    """Half of every draw is one prompt whose label is what the forgetful teacher wrote."""

    share = 0.5

    def choose(self, prompts: Sequence[Prompt]) -> Prompt:
        chosen = super().choose(prompts)
        return replace(chosen, answer=chosen.demonstration.rpartition("#")[2], solution=chosen.demonstration)


class _Flooded(AroundSchedule):
    def __init__(self, inner: Schedule, fault: RepeatedPrompt, prompt: Prompt) -> None:
        super().__init__(inner)
        self._fault, self._prompt, self._copies = fault, prompt, 0

    def next(self, count: int) -> list[Prompt]:
        if not self._fault.active:
            return super().next(count)
        copies = round(self._fault.share * count)
        self._copies += copies
        numbers = range(self._copies - copies, self._copies)
        return [replace(self._prompt, id=f"copy-{n}") for n in numbers] + super().next(count - copies)
