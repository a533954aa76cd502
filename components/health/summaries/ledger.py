"""The ledger as a table: a response a row, with its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from components.health.responses.ledger import Ledger
from components.health.summaries.phrases import before_and_after, changes, helped, saw
from components.types import Level

HEADS = ("No.", "Step", "Rule", "Level", "Saw", "Changed", "Outcome", "Steps lost")


@dataclass(frozen=True, slots=True)
class Row:
    """One response. ``cost`` are steps lost; None where no outcome says it. ``did`` says more than ``changed``."""

    number: int
    step: int
    rule: str
    asked: Level
    level: Level
    reason: str
    saw: list[str]
    changed: list[str]
    did: str
    outcome: str
    signals: list[str]
    recovered: bool | None
    cost: int | None


def ledger_rows(ledger: Ledger) -> list[Row]:
    """Every response in order."""
    rows = []
    for response in ledger.responses:
        outcome = ledger.outcome(response)
        back = [] if response.back_to is None else [f"back to step {response.returns_to}"]
        rows.append(
            Row(
                number=response.number,
                step=response.step,
                rule=response.rule,
                asked=response.asked,
                level=response.level,
                reason=response.reason,
                saw=saw(response),
                changed=[*back, *changes(response)],
                did=response.did,
                outcome=helped(response, outcome),
                signals=[] if outcome is None else before_and_after(outcome.signals),
                recovered=None if outcome is None else outcome.recovered,
                cost=None if outcome is None else outcome.cost_steps,
            )
        )
    return rows


def cells(row: Row) -> list[str]:
    """One response, in the order of `HEADS`; plain text."""
    lists = map("; ".join, (row.saw, row.changed, [row.outcome, *row.signals]))
    return [str(row.number), str(row.step), row.rule, row.level, *lists, "" if row.cost is None else str(row.cost)]
