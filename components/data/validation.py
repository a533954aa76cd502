"""The Great Expectations suite of a part of the rows.

Runs in an ephemeral context: no project files, no network. The library takes seconds to import, so only the stage
imports this module. What rows share with rows of other parts comes as columns of counts, see `survey`.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when the library is imported

import great_expectations as gx
import pandas as pd
from great_expectations.data_context.types.base import ProgressBarsConfig

from components.config.data import ValidationSettings
from components.data.candidates import Candidate
from components.types import Prompt, Split

ACCEPTED = "accepted"
"""What the verifier must say about a reference solution."""
ONE_AT_A_TIME = threading.Lock()
"""The library keeps the context of the whole process in one place."""
COUNTS = ("id_rows", "question_rows", "alike", "alike_splits")
Keyed = Literal["id", "question", "twins"]


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate with what was found out about it before.

    ``verdict`` is what the verifier says of its solution (None without an answer), ``scorable`` whether that was an
    answer at all; ``keys`` are its 64-bit keys by what they stand for; the counts are those of `survey.Shared`;
    ``tokens`` are the lengths of question and solution (None without a tokenizer); ``forbidden`` is a token of roles
    and turns that it holds.
    """

    candidate: Candidate
    split: Split
    verdict: str | None
    scorable: bool = True
    keys: Mapping[str, int] = field(default_factory=dict)
    id_rows: int = 1
    question_rows: int = 1
    alike: int = 1
    alike_splits: int = 1
    tokens: tuple[int, int] | None = None
    forbidden: str | None = None

    @property
    def prompt(self) -> Prompt:
        return self.candidate.prompt


@dataclass(frozen=True, slots=True)
class Rule:
    """An expectation on one column: what it means, and the reason in quarantine (``{value}`` is the cell).

    ``shared`` names the key of what rows break the rule together, so that one of them may stay.
    """

    name: str
    column: str
    meaning: str
    code: str
    reason: str
    expectation: str
    options: Mapping[str, Any] = field(default_factory=dict)
    shared: Keyed | None = None

    def to_dict(self) -> dict[str, Any]:
        """The expectation as Great Expectations configures it."""
        return {"type": self.expectation, "kwargs": {"column": self.column, **self.options}}


@dataclass(frozen=True, slots=True)
class Finding:
    """How many rows a rule looked at, and which ones (positions, and the cells' values) break it."""

    rule: Rule
    checked: int
    broken: dict[int, Any]


def rules(limits: ValidationSettings, tokens: bool = False) -> list[Rule]:
    """The suite. A missing cell breaks its own rule only, not the others of its column."""
    return [
        Rule("row readable", "fault", "a JSON object with the columns of data.source", "not_json", "{value}",
             "expect_column_values_to_be_null"),
        _present("question", "not empty", "empty_question", "the question is missing, empty or not text"),
        _present(
            "answer",
            "not empty, and found where data.source says how to find it",
            "empty_answer",
            "the answer is missing, empty, not text, or not found by data.source.answer_pattern",
        ),
        _present("id", "not empty", "empty_id", "the id is missing, empty or not text"),
        _present("difficulty", "a finite number", "bad_difficulty", "the difficulty is not a finite number"),
        _alone("id unique", "id_rows", "no two rows have the same id", "duplicate_id",
               "the id {id!r} is taken by {earlier}", "id"),
        _alone("question unique", "question_rows",
               "no two questions are equal but for case, white space and Unicode form", "duplicate_question",
               "the question repeats that of {earlier}", "question"),
        *_lengths("question", limits.max_question_chars, limits.max_question_tokens if tokens else None),
        *_lengths("solution", limits.max_solution_chars, limits.max_solution_tokens if tokens else None),
        Rule("no tokens of the chat template", "forbidden", "no row holds a token of roles and turns",
             "template_tokens", "the row holds {value}, which the chat template uses for roles and turns",
             "expect_column_values_to_be_null"),
        Rule("reference solution accepted", "verdict", "the run's own verifier gives the reference solution accuracy 1",
             "verifier_refused", "the verifier does not accept the reference solution ({value})",
             "expect_column_values_to_be_in_set", {"value_set": [ACCEPTED]}),
        _alone("no near-duplicates", "alike",
               "no two questions with the same numbers and answer differ in a few words only", "near_duplicate",
               "the question is nearly that of {earlier}, in the same split", "twins"),
        _alone("no leakage between splits", "alike_splits", "near-duplicates are in one split", "leak",
               "the question is nearly that of {earlier}, which is in another split", "twins"),
    ]  # fmt: skip


def _present(column: str, meaning: str, code: str, reason: str) -> Rule:
    return Rule(f"{column} present", column, meaning, code, reason, "expect_column_values_to_not_be_null")


def _alone(name: str, column: str, meaning: str, code: str, reason: str, key: Keyed) -> Rule:
    limits = {"min_value": 1, "max_value": 1}
    return Rule(name, column, meaning, code, reason, "expect_column_values_to_be_between", limits, key)


def _lengths(column: str, characters: int, tokens: int | None) -> list[Rule]:
    found = [("characters", column, "expect_column_value_lengths_to_be_between", characters)]
    if tokens is not None:
        found.append(("tokens", f"{column}_tokens", "expect_column_values_to_be_between", tokens))
    return [
        Rule(f"{column} length" if unit == "characters" else f"{column} length in tokens", cells,
             f"at most {limit} {unit}", "too_long", f"the {column} is longer than {limit} {unit}", expectation,
             {"max_value": limit})
        for unit, cells, expectation, limit in found
    ]  # fmt: skip


def code_of(rule: Rule, row: Row) -> str:
    """The reason code of a row that breaks a rule; some rules have several."""
    candidate = row.candidate
    if rule.column == "fault" and candidate.fault is not None:
        return candidate.fault.code
    if rule.column in candidate.not_text:
        return "not_text"
    if rule.column == "answer" and candidate.prompt.solution:
        return "answer_not_found"
    if rule.column == "verdict" and not row.scorable:
        return "unscorable_reference"
    return rule.code


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
    unreadable = {i for i, row in enumerate(rows) if row.candidate.fault is not None}
    return [_finding(rule, outcomes[rule.expectation, rule.column], unreadable) for rule in suite]


def _finding(rule: Rule, outcome: Any, unreadable: set[int]) -> Finding:
    found = outcome.result
    if "element_count" not in found:
        raise RuntimeError(f"Great Expectations could not check {rule.name!r}: {outcome.exception_info}")
    broken = dict(zip(found["unexpected_index_list"] or [], found["unexpected_list"], strict=True))
    if outcome.success == bool(broken):
        raise RuntimeError(f"Great Expectations contradicts itself on {rule.name!r}: {found}")
    if rule.column == "fault":
        return Finding(rule, found["element_count"], broken)
    broken = {i: value for i, value in broken.items() if i not in unreadable}
    return Finding(rule, found["element_count"] - len(unreadable), broken)
