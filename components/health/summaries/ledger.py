"""The ledger as a table: a response a row, with its outcome."""

from __future__ import annotations

from typing import NamedTuple

from components.health.responses.ledger import Ledger
from components.health.summaries.phrases import before_and_after, changes, helped, saw
from components.types import Response

HEADS = ("No.", "Step", "Rule", "Level", "Saw", "Changed", "Outcome", "Steps lost")


class Row(NamedTuple):
    """One response. ``cost`` are steps lost; None where no outcome says it."""

    response: Response
    saw: list[str]
    changed: list[str]
    outcome: str
    signals: list[str]
    cost: int | None


def ledger_rows(ledger: Ledger) -> list[Row]:
    """Every response in order."""
    rows = []
    for response in ledger.responses:
        outcome = ledger.outcome(response)
        back = [] if response.back_to is None else [f"back to step {response.returns_to}"]
        signals, cost = ([], None) if outcome is None else (before_and_after(outcome.signals), outcome.cost_steps)
        changed = [*back, *changes(response)]
        rows.append(Row(response, saw(response), changed, helped(response, outcome), signals, cost))
    return rows


def cells(row: Row) -> list[str]:
    """One response, in the order of `HEADS`; plain text."""
    response, cost = row.response, "" if row.cost is None else str(row.cost)
    lists = map("; ".join, (row.saw, row.changed, [row.outcome, *row.signals]))
    return [str(response.number), str(response.step), response.rule, response.level, *lists, cost]
