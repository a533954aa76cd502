"""From rows, which may come twice, late or in pieces, to one record a step."""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from components.health.readers.names import Names
from components.health.readers.numbers import as_number
from components.types import StepRecord


class Row(NamedTuple):
    """What one line says of a step, by the trainer's names."""

    step: int
    values: dict[str, Any]
    rolled_back_to: int | None = None
    """Of our own records: the step to which the monitor goes back with the run."""


class Steps:
    """Brings the rows together.

    Rows of one step that name different metrics belong together, however late (an evaluation, another process). A row
    that names a metric of its step again replaces the step. If there are later steps it is a resumed run, which went
    back to a checkpoint: what was logged of the later steps is void. Times are never looked at: clocks jump.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._steps: dict[int, dict[str, Any]] = {}
        self._order: list[int] = []  # of the steps, ascending
        self._resumed: list[tuple[int, int]] = []
        self._again: list[int] = []
        self._back: dict[int, int] = {}
        self._texts: list[tuple[int, str, Any]] = []

    def add(self, row: Row) -> None:
        """Take in one row; metrics that no signal comes from are left out."""
        values = {sys.intern(name): value for name, value in row.values.items() if self._names.reads(name)}
        self._texts += [(row.step, n, v) for n, v in values.items() if v is not None and as_number(v) is None]
        if not values:
            return
        if self._steps.get(row.step, {}).keys() & values.keys():
            latest = self._order[-1]
            if row.step < latest:
                self._resumed.append((row.step, latest))
            else:
                self._again.append(row.step)
            self._forget_from(row.step)
        if row.step not in self._steps:
            insort(self._order, row.step)
        self._steps.setdefault(row.step, {}).update(values)
        if row.rolled_back_to is not None:
            self._back[row.step] = row.rolled_back_to

    def _forget_from(self, step: int) -> None:
        """Drop a step and all later ones. A step is dropped as often as it was added, so all of it is linear."""
        at = bisect_left(self._order, step)
        for gone in self._order[at:]:
            del self._steps[gone]
            self._back.pop(gone, None)
        del self._order[at:]

    def records(self) -> list[StepRecord]:
        """The steps in order. The policy has as many steps behind it as their number says."""
        return [self._record(step, self._steps[step]) for step in self._order]

    def _record(self, step: int, values: Mapping[str, Any]) -> StepRecord:
        notes = {"rolled_back_to": self._back[step]} if step in self._back else {}
        return StepRecord(step, {"progress": float(step), **self._names.translate(values)}, notes)

    def remarks(self) -> Iterable[str]:
        """What a reader of the verdicts should know about these rows."""
        for step, latest in self._resumed:
            yield f"resumed: the log goes back from step {latest} to {step}; what it said of those steps before is void"
        if self._again:
            yield f"steps said again, of which the later row counts: {len(self._again)}, the first {self._again[0]}"
        if self._texts:
            step, name, value = self._texts[0]
            first = f"the first {name} in step {step}, {value!r:.60}"
            yield f"values left out, which are no numbers: {len(self._texts)}, {first}"
        every = self._every()
        if every > 1:
            yield f"every {every}th step is logged; streaks and windows of the rules count logged steps"

    def _every(self) -> int:
        """The usual distance between logged steps."""
        distances = Counter(after - before for before, after in pairwise(self._order))
        return distances.most_common(1)[0][0] if distances else 1
