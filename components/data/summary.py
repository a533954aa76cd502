"""Counts that grow while rows are written: the content of `validation.json` and of the page."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from components.data.admission import Refused
from components.data.rules import Row, Rule
from components.data.splits import SPLITS
from components.data.validation import Finding
from components.types import Prompt, Split

KEPT = 100
"""Rows of the quarantine that are shown; its file has all."""
MOST_NAMES = 1000
"""Families and levels that are counted one by one."""
OTHER = "(other)"


@dataclass
class Tally:
    """What has been admitted and refused so far. ``tokens`` says whether lengths are in tokens."""

    rules: Sequence[Rule]
    tokens: bool = False
    splits: Counter[Split] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    cells: Counter[tuple[str, float]] = field(default_factory=Counter)
    levels: set[float] = field(default_factory=set)
    codes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Prompt] = field(default_factory=dict)
    quarantine: list[Refused] = field(default_factory=list)
    quarantined: int = 0
    checked: Counter[str] = field(default_factory=Counter)
    unexpected: Counter[str] = field(default_factory=Counter)
    lengths: dict[str, array[int]] = field(default_factory=lambda: {"question": array("I"), "solution": array("I")})

    @property
    def admitted(self) -> int:
        return sum(self.splits.values())

    @property
    def rows(self) -> int:
        """Rows read, admitted or not."""
        return self.admitted + self.quarantined

    def validated(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            self.checked[finding.rule.name] += finding.checked
            self.unexpected[finding.rule.name] += len(finding.broken)

    def refuse(self, refused: Refused) -> None:
        self.quarantined += 1
        self.codes.update(set(refused.codes))
        if len(self.quarantine) < KEPT:
            self.quarantine.append(refused)

    def admit(self, row: Row) -> None:
        prompt = row.prompt
        self.splits[row.split] += 1
        known = prompt.family in self.families or len(self.families) < MOST_NAMES
        family = prompt.family if known else OTHER
        self.families[family] += 1
        if len(self.levels) < MOST_NAMES or prompt.difficulty in self.levels:
            self.levels.add(prompt.difficulty)
            self.cells[family, prompt.difficulty] += 1
        self.examples.setdefault(family, prompt)
        sizes = row.tokens or (len(prompt.text), len(prompt.solution))
        for column, size in zip(self.lengths.values(), sizes, strict=True):
            column.append(size)

    def _expectations(self) -> list[dict[str, Any]]:
        """Every rule with the rows that it looked at and those that break it."""
        return [
            {
                "name": rule.name,
                "column": rule.column,
                "success": not self.unexpected[rule.name],
                "checked": self.checked[rule.name],
                "unexpected": self.unexpected[rule.name],
                "detail": rule.meaning,
                "level": "quarantine",
            }
            for rule in self.rules
        ]

    def summary(self) -> dict[str, Any]:
        """The content of `validation.json` but for what concerns the table as a whole.

        Expectations are counted over all rows read. ``success`` says that rows were admitted (none of them breaks a
        rule); whether too many are in quarantine is for `limits` and the gate to say.
        """
        return {
            "rows": self.rows,
            "quarantined": self.quarantined,
            "success": self.admitted > 0,
            "splits": {name: self.splits[name] for name in SPLITS},
            "families": dict(sorted(self.families.items())),
            "codes": dict(sorted(self.codes.items())),
            "expectations": self._expectations(),
            "lengths": {"unit": "tokens" if self.tokens else "characters", **self._percentiles()},
        }

    def _percentiles(self) -> dict[str, dict[str, int]]:
        found = {}
        for column, sizes in self.lengths.items():
            if sizes:
                values = np.percentile(np.frombuffer(sizes, np.uint32), (50, 95, 100), method="lower")
                found[column] = dict(zip(("p50", "p95", "max"), map(int, values), strict=True))
        return found
