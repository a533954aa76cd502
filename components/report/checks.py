"""The gate's checks as a reader needs them: by question, gravest first, and what would change what did not pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.report.run import Run, dig

ORDER = ("fail", "inconclusive", "pass")
OTHER = "Other checks"

GROUPS: dict[str, tuple[str, ...]] = {
    "Is it better?": ("gain", "champion", "evaluation", "suite", "truncated", "unscorable", "detect"),
    "Is anything broken that it should keep?": ("canar", "fairness", "refusal"),
    "Was its training healthy?": ("health", "triage", "completed", "response", "ledger"),
    "Can the data and the verifier be trusted?": ("data", "verifier", "audit", "admitted", "contaminat"),
    "Is it what it says it is?": (
        "checkpoint", "lineage", "commit", "format", "signature", "evidence", "digest", "lock", "snapshot", "input",
    ),
}  # fmt: skip
"""Question -> words in the names of the checks that answer it; the first group that fits takes a check."""


@dataclass(frozen=True)
class Check:
    """One check; ``change`` is empty where it passed, and where an old record does not say."""

    name: str
    result: str
    evidence: str
    change: str


def read_checks(run: Run) -> list[Check]:
    """The checks of the answer that counts, in the gate's order."""
    rows: Sequence[Mapping[str, Any]] = dig(run.judged, "checks") or ()
    return [
        Check(
            str(row["name"]), str(row["result"]), str(row.get("evidence") or ""),
            "" if row["result"] == "pass" else str(row.get("how") or ""),
        )
        for row in rows
    ]  # fmt: skip


def check_named(run: Run, name: str) -> Check | None:
    """The gate's answer to one of its checks; None where it did not make that one."""
    return next((check for check in read_checks(run) if check.name == name), None)


def grouped(checks: Sequence[Check]) -> dict[str, list[Check]]:
    """By question; within one, and among them, what did not pass comes first."""
    found: dict[str, list[Check]] = {name: [] for name in (*GROUPS, OTHER)}
    for check in sorted(checks, key=_gravity):
        found[_group(check.name)].append(check)
    groups = [(name, group) for name, group in found.items() if group]
    return dict(sorted(groups, key=lambda item: min(map(_gravity, item[1]))))


def open_checks(checks: Sequence[Check]) -> list[Check]:
    """What failed, which decides alone; then what is inconclusive, which only a person can judge."""
    return [check for result in ("fail", "inconclusive") for check in checks if check.result == result]


def tally(checks: Sequence[Check]) -> dict[str, int]:
    """How many checks had each result, of those that occurred."""
    counts = {result: sum(check.result == result for check in checks) for result in reversed(ORDER)}
    return {result: amount for result, amount in counts.items() if amount}


def _gravity(check: Check) -> int:
    return ORDER.index(check.result) if check.result in ORDER else 0


def _group(name: str) -> str:
    return next((group for group, words in GROUPS.items() if any(word in name.lower() for word in words)), OTHER)
