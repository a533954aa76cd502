"""A schedule and a second copy of it: what is drawn is what the copy draws, or the schedule is broken.

A schedule is a function of its prompts, its seed and what it has observed, so two copies that are given the same draw
the same. A difference is no noise: a loader has restarted or stands still, a state was lost, a draw was replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.scheduling.base import Schedule, State, check_fields
from components.types import Group, Prompt


class Checked(Schedule):
    """Draws from ``inner`` and compares with ``copy``, which has the prompts as they were read.

    ``differ`` counts the prompts of the present step that are in the split as they were drawn, and are not those that
    the copy draws. After `take_over` the copy draws.
    """

    def __init__(self, inner: Schedule, copy: Schedule) -> None:
        self.inner, self.copy, self.differ, self.taken_over = inner, copy, 0, False
        self._known = {prompt.id: prompt for prompt in copy.prompts}

    @property
    def prompts(self) -> tuple[Prompt, ...]:  # type: ignore[override]
        return self.copy.prompts

    def next(self, count: int) -> list[Prompt]:
        expected = self.copy.next(count)
        if self.taken_over:
            return expected
        drawn = self.inner.next(count)
        pairs = zip(drawn, expected, strict=False)
        self.differ += sum(one.id != other.id and self._known.get(one.id) == one for one, other in pairs)
        self.differ += abs(len(drawn) - len(expected))
        return drawn

    def fork(self, number: int) -> None:
        self.inner.fork(number)
        self.copy.fork(number)

    def worthwhile(self, groups: Sequence[Group], size: int) -> list[bool]:
        drawing = self.copy if self.taken_over else self.inner
        return drawing.worthwhile(groups, size)

    def observe(self, groups: Sequence[Group]) -> None:
        if not self.taken_over:
            self.inner.observe(groups)
        self.copy.observe([group for group in groups if group.prompt.id in self._known])

    def metrics(self) -> dict[str, float]:
        """Those of the schedule that draws, and how many prompts differed since they were last read."""
        found = {**(self.copy if self.taken_over else self.inner).metrics(), "differ": float(self.differ)}
        self.differ = 0
        return found

    def take_over(self) -> None:
        """The copy draws from now on."""
        self.taken_over = True

    def state_dict(self) -> State:
        return {"inner": self.inner.state_dict(), "copy": self.copy.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_fields(state, {"inner": None, "copy": None})
        self.inner.load_state_dict(state["inner"])
        self.copy.load_state_dict(state["copy"])
