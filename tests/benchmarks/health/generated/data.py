"""Prompts that are not what they were when training began."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from components.scheduling import Schedule
from components.seeds import derive
from components.types import Prompt
from tests.benchmarks.health.faults.base import AroundSchedule
from tests.benchmarks.health.generated.base import Generated


class Altered(Generated):
    """Some of the prompts that are drawn are altered; ``size`` is their share."""

    part = "data"

    def schedule(self, schedule: Schedule) -> Schedule:
        return _Altering(schedule, self)

    @abstractmethod
    def altered(self, prompt: Prompt, others: tuple[Prompt, ...]) -> Prompt:
        """What is drawn in its stead."""


class _Altering(AroundSchedule):
    def __init__(self, inner: Schedule, fault: Altered) -> None:
        super().__init__(inner)
        self._fault = fault

    def next(self, count: int) -> list[Prompt]:
        fault = self._fault
        return [
            fault.altered(one, self.inner.prompts)
            if fault.touches(place, one.family) and fault.hits(fault.size, one.id)
            else one
            for place, one in enumerate(self.inner.next(count))
        ]


class WrongAnswers(Altered):
    """Labels of other prompts."""

    sizes = (0.2, 0.5, 1.0)

    def altered(self, prompt: Prompt, others: tuple[Prompt, ...]) -> Prompt:
        other = others[derive(self.seed, prompt.id) % len(others)]
        return replace(prompt, answer=other.answer, solution=other.solution)


class OtherQuestions(Altered):
    """The texts of other prompts: the answers belong to other questions."""

    sizes = (0.2, 0.5, 1.0)

    def altered(self, prompt: Prompt, others: tuple[Prompt, ...]) -> Prompt:
        return replace(prompt, text=others[derive(self.seed, prompt.id) % len(others)].text)


class CutQuestions(Altered):
    """Texts without their end."""

    sizes = (0.2, 0.5, 1.0)

    def altered(self, prompt: Prompt, others: tuple[Prompt, ...]) -> Prompt:
        return replace(prompt, text=prompt.text[: max(1, len(prompt.text) // 2)])


class ForeignPrompts(Altered):
    """Copies of one prompt with ids of their own."""

    sizes = (0.25, 0.5, 0.75)

    def altered(self, prompt: Prompt, others: tuple[Prompt, ...]) -> Prompt:
        return replace(others[derive(self.seed, "copied") % len(others)], id=f"copy-{prompt.id}")


DATA = (WrongAnswers, OtherQuestions, CutQuestions, ForeignPrompts)
