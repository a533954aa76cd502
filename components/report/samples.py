"""Which completions a reviewer reads side by side: some fixed, some still wrong, some broken, one that stayed right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from components.report.run import dig

QUOTA = {"fixed": 3, "broken": 2, "still wrong": 2, "still right": 1}
"""Outcome -> how many are shown. What one outcome cannot fill goes to the others, in this order."""


@dataclass(frozen=True)
class Sample:
    """One held-out prompt with the greedy completion before and after. ``accuracy`` None means unscorable."""

    outcome: str
    family: str
    prompt: str
    answer: str
    before: str
    after: str
    accuracy_before: float | None
    accuracy_after: float | None


def outcome(before: float | None, after: float | None) -> str:
    """A completion counts as right only where the verifier gave it full accuracy."""
    was, now = before == 1, after == 1
    if now:
        return "still right" if was else "fixed"
    return "broken" if was else "still wrong"


def read_sample(row: Mapping[str, Any]) -> Sample:
    """One line of `samples.jsonl`."""
    before, after = dig(row, "sft", "accuracy"), dig(row, "trained", "accuracy")
    return Sample(
        outcome=outcome(before, after),
        family=str(row.get("family") or ""),
        prompt=str(row.get("prompt", "")),
        answer=str(row.get("answer", "")),
        before=str(dig(row, "sft", "text") or ""),
        after=str(dig(row, "trained", "text") or ""),
        accuracy_before=before,
        accuracy_after=after,
    )


def tally(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many samples had each outcome."""
    outcomes = [read_sample(row).outcome for row in rows]
    return {name: outcomes.count(name) for name in QUOTA}


def choose(rows: Sequence[Mapping[str, Any]]) -> list[Sample]:
    """The samples to show, spread over families, in the order of ``QUOTA``. Never chosen by what looks best."""
    pools = {name: [] for name in QUOTA}  # type: dict[str, list[Sample]]
    for row in sorted(rows, key=lambda row: str(row.get("id"))):
        sample = read_sample(row)
        pools[sample.outcome].append(sample)
    spread = {name: _alternate_families(pool) for name, pool in pools.items()}
    taken = {name: min(QUOTA[name], len(pool)) for name, pool in spread.items()}
    for name, pool in spread.items():
        room = sum(QUOTA.values()) - sum(taken.values())
        taken[name] += min(room, len(pool) - taken[name])
    return [sample for name, pool in spread.items() for sample in pool[: taken[name]]]


def _alternate_families(samples: Sequence[Sample]) -> list[Sample]:
    """One of each family in turn."""
    by_family: dict[str, list[Sample]] = {}
    for sample in samples:
        by_family.setdefault(sample.family, []).append(sample)
    turns = zip_longest(*(by_family[name] for name in sorted(by_family)))
    return [sample for turn in turns for sample in turn if sample is not None]
