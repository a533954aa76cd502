"""The Great Expectations suite of a part of the rows.

Runs in an ephemeral context: no project files, no network. The library takes seconds to import, so only the stage
imports this module. What rows share with rows of other parts comes as columns of counts, see `survey`.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when the library is imported

import great_expectations as gx
import pandas as pd
from great_expectations.data_context.types.base import ProgressBarsConfig

from components.data.rules import COUNTS, Row, Rule

ONE_AT_A_TIME = threading.Lock()
"""The library keeps the context of the whole process in one place."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How many rows a rule looked at, and which ones (positions, and the cells' values) break it."""

    rule: Rule
    checked: int
    broken: dict[int, Any]


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """One line per row; empty texts and NaN are null."""
    prompts = [row.prompt for row in rows]
    columns: dict[str, list[Any]] = {
        "fault": [row.candidate.fault.words if row.candidate.fault else None for row in rows],
        "question": [prompt.text or None for prompt in prompts],
        "answer": [prompt.answer or None for prompt in prompts],
        "solution": [prompt.solution or None for prompt in prompts],
        "id": [prompt.id or None for prompt in prompts],
        "difficulty": [None if math.isnan(prompt.difficulty) else prompt.difficulty for prompt in prompts],
        "verdict": [row.verdict for row in rows],
        "forbidden": [row.forbidden for row in rows],
        "question_tokens": [row.tokens[0] if row.tokens else None for row in rows],
        "solution_tokens": [row.tokens[1] if row.tokens else None for row in rows],
        **{name: [getattr(row, name) for row in rows] for name in COUNTS},
    }
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def validate(rows: Sequence[Row], suite: Sequence[Rule]) -> list[Finding]:
    """Run the suite over a part of the rows; one finding per rule, in order. Lines that are no rows break one only."""
    with ONE_AT_A_TIME:
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        asset = context.data_sources.add_pandas("prompts").add_dataframe_asset("rows")
        table = frame(rows)
        batch = asset.add_batch_definition_whole_dataframe("all").get_batch(batch_parameters={"dataframe": table})
        expectations = gx.ExpectationSuite("prompts", expectations=[rule.to_dict() for rule in suite])
        result = batch.validate(expectations, result_format="COMPLETE")  # a ValidationDefinition would store it too
    outcomes = {
        (config["type"], config["kwargs"]["column"]): outcome
        for outcome in result.results
        if (config := outcome.expectation_config)
    }
    unreadable = {i for i, row in enumerate(rows) if row.candidate.fault is not None}
    return [_finding(rule, outcomes[rule.expectation, rule.column], table, unreadable) for rule in suite]


def _finding(rule: Rule, outcome: Any, table: pd.DataFrame, unreadable: set[int]) -> Finding:
    """Positions come from the library, cells from the frame: of the values that break a rule it lists 200 at most."""
    found = outcome.result
    if "element_count" not in found:
        raise RuntimeError(f"Great Expectations could not check {rule.name!r}: {outcome.exception_info}")
    broken = {int(at): table[rule.column].iloc[at] for at in found["unexpected_index_list"] or []}
    if outcome.success == bool(broken):
        raise RuntimeError(f"Great Expectations contradicts itself on {rule.name!r}: {found}")
    if rule.column == "fault":
        return Finding(rule, found["element_count"], broken)
    broken = {i: value for i, value in broken.items() if i not in unreadable}
    return Finding(rule, found["element_count"] - len(unreadable), broken)
