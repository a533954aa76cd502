"""From rows, which may come twice, late or in pieces, to one record a step."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from components.health.readers.lines import as_number
from components.health.readers.names import Names
from components.types import StepRecord

EVALUATION = ("eval_", "eval/", "val_", "val/", "val-")
"""Beginnings of names that an evaluation has: several may come in one step."""
USUAL = 0.9
"""Share of the rows from its first number on in which a name has one, where null stands for NaN and not for a gap."""
PLACES = frozenset({"epoch", "step", "_step", "global_step", "_timestamp", "_runtime", "timestamp", "time"})
"""Numbers that say where or when a row belongs."""


class Row(NamedTuple):
    """What one line says of a step, by the trainer's names. ``step`` is None where a console prints none, and ``own``
    marks a record of ours."""

    step: int | None
    values: dict[str, Any]
    rolled_back_to: int | None = None
    """Of our own records: the step to which the monitor goes back with the run."""
    own: bool = False


class Steps:
    """Brings the rows together.

    Rows of one step that name different metrics belong together, however late (an evaluation, another process). A row
    that names a metric of its step again replaces the step, unless it is another evaluation. If there are later steps
    it is a resumed run, which went back to a checkpoint: what was logged of the later steps is void. Times are never
    looked at: clocks jump.

    JSON null is what a table writes where a row has nothing, and what some writers put for NaN. It is NaN in a row of
    the training, and of a metric that such rows usually have.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._steps: dict[int, dict[str, Any]] = {}
        self._order: list[int] = []  # of the steps, ascending
        self._resumed: list[tuple[int, int]] = []
        self._again: list[int] = []
        self._back: dict[int, int] = {}
        self._texts: list[tuple[int, str, Any]] = []
        self._counted = 0
        self._trained = 0  # rows of the training, and for each name the first of them with a number, and how many had
        self._usual: dict[str, tuple[int, int]] = {}
        self.unread: set[str] = set()
        """Names of numbers that no signal comes from."""
        self.voided: int | None = None
        """For who follows a live log: the lowest step that was taken back since this was last set to None."""

    def add(self, row: Row) -> None:
        """Take in one row; metrics that no signal comes from are left out. A row without a step is the next one, but
        an evaluation belongs to the present one."""
        values = {sys.intern(name): value for name, value in row.values.items() if self._names.reads(name)}
        values = values if row.own else self._without_gaps(values)
        others = row.values.keys() - values.keys() - self.unread - PLACES
        self.unread |= {name for name in others if as_number(row.values[name]) is not None}
        if values and row.step is None:
            self._counted += not all(name.startswith("eval_") for name in values)
            row = row._replace(step=self._counted)
        if values and row.step is not None:
            self._take(row.step, row, values)

    def _without_gaps(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values without null where that stands for a gap in a table."""
        trained = [name for name in values if not name.startswith(EVALUATION)]
        if all(values[name] is None for name in trained):
            return {name: value for name, value in values.items() if value is not None}
        self._trained += 1
        kept = {}
        for name, value in values.items():
            first, had = self._usual.get(name, (self._trained, 0))
            missed = value is None and (name not in trained or had < USUAL * (self._trained - first))
            if value is None and (missed or not had):
                continue
            kept[name] = value
            self._usual[name] = first, had + 1
        return kept

    def _take(self, step: int, row: Row, values: dict[str, Any]) -> None:
        self._texts += [(step, n, v) for n, v in values.items() if v is not None and as_number(v) is None]
        again = self._steps.get(step, {}).keys() & values.keys()
        if again and not (step == self._order[-1] and all(name.startswith(EVALUATION) for name in again)):
            latest = self._order[-1]
            if step < latest:
                self._resumed.append((step, latest))
            else:
                self._again.append(step)
            self._forget_from(step)
        if step not in self._steps:
            insort(self._order, step)
        self._steps.setdefault(step, {}).update(values)
        if row.rolled_back_to is not None:
            self._back[step] = row.rolled_back_to

    def _forget_from(self, step: int) -> None:
        """Drop a step and all later ones. A step is dropped as often as it was added, so all of it is linear."""
        at = bisect_left(self._order, step)
        self.voided = step if self.voided is None else min(step, self.voided)
        for gone in self._order[at:]:
            del self._steps[gone]
            self._back.pop(gone, None)
        del self._order[at:]

    def known(self, step: int) -> Collection[str]:
        """The names that a step has by now."""
        return self._steps.get(step, {}).keys()

    def after(self, step: int) -> list[StepRecord]:
        """The steps after one, in order."""
        return [self._record(one) for one in self._order[bisect_right(self._order, step) :]]

    def records(self) -> list[StepRecord]:
        """The steps in order. The policy has as many steps behind it as their number says."""
        return [self._record(step) for step in self._order]

    def _record(self, step: int) -> StepRecord:
        notes = {"rolled_back_to": self._back[step]} if step in self._back else {}
        return StepRecord(step, {"progress": float(step), **self._names.translate(self._steps[step])}, notes)

    def remarks(self) -> Iterable[str]:
        """What a reader of the verdicts should know about these rows."""
        for step, latest in self._resumed:
            yield f"resumed: the log goes back from step {latest} to {step}; what it said of those steps before is void"
        if self._again:
            yield f"steps said again, of which the later row counts: {len(self._again)}, the first {self._again[0]}"
        if self._counted:
            yield "the console prints no step: its entries are counted"
        if self._texts:
            step, name, value = self._texts[0]
            first = f"the first {name} in step {step}, {value!r:.60}"
            yield f"values left out, which are no numbers: {len(self._texts)}, {first}"
        distances = Counter(after - before for before, after in pairwise(self._order))
        if distances and (every := distances.most_common(1)[0][0]) > 1:
            yield f"every {every}th step is logged; streaks and windows of the rules count logged steps"
