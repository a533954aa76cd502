"""What a summary of a run is made from, and how it writes lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from components.config import Settings
from components.health.falls import lost
from components.health.records import Ledger, discarded
from components.health.summaries.phrases import listed
from components.types import Response, StepRecord, Verdict

State = Literal[
    "healthy",
    "warned",
    "recovered",
    "acted",
    "not recovered",
    "worse",
    "stopped",
    "adopted",
    "not watched",
    "not trained",
]
NAMED = 3
"""Steps, rules or responses that a sentence names before it counts the rest."""


@dataclass(frozen=True)
class RunSummary:
    """Settings, result and log of a run, with what the sentences about it are derived from."""

    settings: Settings
    train: Mapping[str, Any]
    records: Sequence[StepRecord]
    verdicts: Sequence[Verdict]
    ledger: Ledger

    @property
    def acts(self) -> list[Response]:
        """Responses that changed something or stopped the run."""
        return [one for one in self.ledger.responses if one.level != "warn" and one.undoes is None]

    @property
    def taken_back(self) -> list[Response]:
        """Entries of responses that were taken back."""
        return [one for one in self.ledger.responses if one.undoes is not None]

    @property
    def last_acts(self) -> list[Response]:
        """The last response to each rule: it may have succeeded where an earlier one failed."""
        return list({one.rule: one for one in self.acts}.values())

    @cached_property
    def lost_accuracy(self) -> list[str]:
        """What held-out accuracy lacks of its best at the end, a sentence for all prompts and for each family."""
        return lost(self.records)

    @property
    def broke(self) -> StepRecord | None:
        """The step at which the monitor itself failed, where it did."""
        return next((record for record in self.records if "monitor_failed" in record.notes), None)

    @property
    def steps(self) -> int:
        return len(self.records) or int(self.train["steps"])

    @property
    def lost(self) -> int:
        """Steps that the policy no longer has behind it; one that was thrown away twice counts once."""
        return sum(part.steps for part in discarded([record.step for record in self.records], self.acts))

    @property
    def progress(self) -> int:
        """Steps that the policy has behind it; without those that were thrown away, or did not count."""
        return int(self.train.get("progress", self.steps - self.lost))

    def why(self, rule: str, otherwise: str) -> str:
        return self.settings.health.rules[rule].why if rule in self.settings.health.rules else otherwise

    def part(self, rule: str) -> str | None:
        """The part of the run that a rule points at."""
        return self.settings.health.rules[rule].part if rule in self.settings.health.rules else None


def rules_of(events: Iterable[Verdict | Response]) -> list[str]:
    """Their rules, in the order in which they came first."""
    return list(dict.fromkeys(event.rule for event in events))


def named(names: Sequence[str]) -> str:
    """As `listed`; beyond `NAMED` the rest is counted."""
    if len(names) > NAMED + 1:
        names = [*names[:NAMED], f"{len(names) - NAMED} more"]
    return listed(names)
