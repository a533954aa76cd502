"""The Great Expectations suite of a set of prompts.

Runs in an ephemeral context: no project files, no network. The library takes seconds to import, so only the stage
imports this module.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when the library is imported

import great_expectations as gx
import pandas as pd
from great_expectations.data_context.types.base import ProgressBarsConfig

from components.config.data import ValidationSettings
from components.tasks.identity import normalise
from components.types import Prompt, Split

ACCEPTED = "accepted"
"""What the verifier must say about a reference solution."""


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt with what was found out about it before: its split, and what the verifier says of its solution."""

    prompt: Prompt
    split: Split
    verdict: str | None


@dataclass(frozen=True, slots=True)
class Rule:
    """An expectation on one column: what it means, and the reason in quarantine (``{value}`` is the cell)."""

    name: str
    column: str
    meaning: str
    reason: str
    expectation: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unique(self) -> bool:
        """Whether rows break it together, so that one of them may stay."""
        return self.expectation == "expect_column_values_to_be_unique"

    def to_dict(self) -> dict[str, Any]:
        """The expectation as Great Expectations configures it."""
        return {"type": self.expectation, "kwargs": {"column": self.column, **self.options}}


@dataclass(frozen=True, slots=True)
class Finding:
    """How many rows a rule looked at, and which ones (positions, and the cells' values) break it."""

    rule: Rule
    checked: int
    broken: dict[int, Any]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.rule.name,
            "column": self.rule.column,
            "success": not self.broken,
            "checked": self.checked,
            "unexpected": len(self.broken),
            "detail": self.rule.meaning,
        }


def rules(limits: ValidationSettings) -> list[Rule]:
    """The suite. A missing cell breaks its own rule only, not the others of its column."""
    return [
        _present("question", "not empty", "the question is missing, empty or not text"),
        _present(
            "answer",
            "not empty, and found by answer_pattern where that is set",
            "the answer is missing, empty, not text, or not found by data.source.answer_pattern",
        ),
        _present("id", "not empty", "the id is missing, empty or not text"),
        _present("difficulty", "a finite number", "the difficulty is not a finite number"),
        _unique("id unique", "id", "no two rows have the same id", "the id {value!r} is taken by an earlier row"),
        _unique(
            "question unique",
            "normalised",
            "no two questions are equal but for case, white space and Unicode form",
            "the question repeats an earlier row's",
        ),
        _at_most("question", limits.max_question_chars),
        _at_most("solution", limits.max_solution_chars),
        Rule(
            "reference solution accepted",
            "verdict",
            "the run's own verifier gives the reference solution accuracy 1",
            "the verifier does not accept the reference solution ({value})",
            "expect_column_values_to_be_in_set",
            {"value_set": [ACCEPTED]},
        ),
        Rule(
            "no leakage between splits",
            "splits",
            "equal questions are in one split",
            "the question is in {value} splits",
            "expect_column_values_to_be_between",
            {"min_value": 1, "max_value": 1},
        ),
    ]


def _present(column: str, meaning: str, reason: str) -> Rule:
    return Rule(f"{column} present", column, meaning, reason, "expect_column_values_to_not_be_null")


def _unique(name: str, column: str, meaning: str, reason: str) -> Rule:
    return Rule(name, column, meaning, reason, "expect_column_values_to_be_unique")


def _at_most(column: str, limit: int) -> Rule:
    reason = f"the {column} is longer than {limit} characters"
    expectation, options = "expect_column_value_lengths_to_be_between", {"max_value": limit}
    return Rule(f"{column} length", column, f"at most {limit} characters", reason, expectation, options)


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """One line per row; empty texts and NaN are null."""
    keys = [normalise(row.prompt.text) or None for row in rows]
    splits: dict[str | None, set[Split]] = defaultdict(set)
    for key, row in zip(keys, rows, strict=True):
        splits[key].add(row.split)
    columns: dict[str, list[Any]] = {
        "question": [row.prompt.text or None for row in rows],
        "answer": [row.prompt.answer or None for row in rows],
        "solution": [row.prompt.solution or None for row in rows],
        "id": [row.prompt.id or None for row in rows],
        "difficulty": [None if math.isnan(row.prompt.difficulty) else row.prompt.difficulty for row in rows],
        "normalised": keys,
        "verdict": [row.verdict for row in rows],
        "splits": [len(splits[key]) for key in keys],
    }
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def validate(rows: Sequence[Row], limits: ValidationSettings) -> list[Finding]:
    """Run the suite; one finding per rule, in the order of `rules`."""
    suite = rules(limits)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    batch = context.data_sources.add_pandas("prompts").add_dataframe_asset("rows")
    definition = gx.ValidationDefinition(
        name="prompts",
        data=batch.add_batch_definition_whole_dataframe("all"),
        suite=context.suites.add(gx.ExpectationSuite("prompts", expectations=[rule.to_dict() for rule in suite])),
    )
    result = context.validation_definitions.add(definition).run(
        batch_parameters={"dataframe": frame(rows)}, result_format="COMPLETE"
    )
    outcomes = {
        (config["type"], config["kwargs"]["column"]): outcome
        for outcome in result.results
        if (config := outcome.expectation_config)
    }
    return [_finding(rule, outcomes[rule.expectation, rule.column]) for rule in suite]


def _finding(rule: Rule, outcome: Any) -> Finding:
    found = outcome.result
    if "element_count" not in found:
        raise RuntimeError(f"Great Expectations could not check {rule.name!r}: {outcome.exception_info}")
    broken = dict(zip(found["unexpected_index_list"] or [], found["unexpected_list"], strict=True))
    if outcome.success == bool(broken):
        raise RuntimeError(f"Great Expectations contradicts itself on {rule.name!r}: {found}")
    return Finding(rule, found["element_count"], broken)
