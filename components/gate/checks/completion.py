"""Did training come to its end, with every step on record?"""

from __future__ import annotations

from collections.abc import Sequence

from components.config import Settings
from components.gate.checks.base import Answer, Check
from components.gate.evidence import Evidence
from components.types import GateResult, StepRecord


def _completed(evidence: Evidence, settings: Settings) -> Answer:
    records: Sequence[StepRecord] = evidence.read("records")
    outcome, steps, progress = (
        evidence.value("train", "outcome"),
        *(evidence.number("train", name) for name in ("steps", "progress")),
    )
    if settings.train.adopted is not None:
        last = f"its log has {len(records)} steps, the last one is {progress:.0f}"
        return "inconclusive", f"trained elsewhere: {last}; which step was to be the last is not known"
    planned = settings.train.steps
    unbroken = len(records) == steps and all(record.step == number for number, record in enumerate(records))
    answer: GateResult = "pass" if outcome == "completed" and progress == planned <= steps and unbroken else "fail"
    undone = f", {steps - progress:.0f} more were undone" if steps > progress else ""
    return answer, f"{outcome} after {progress:.0f} of {planned} steps{undone}, {len(records)} on record"


COMPLETED = Check(
    _completed,
    "train to the last planned step; what stopped it is in out/verdict.md. Of a checkpoint from another trainer: see "
    "whether this was the end, and give the reason when you approve",
)
