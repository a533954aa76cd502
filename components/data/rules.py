"""The expectations that every row must meet, and what is known of a row when they are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from components.config.data import ValidationSettings
from components.data.candidates import Candidate
from components.types import Prompt, Split

ACCEPTED = "accepted"
"""What the verifier must say about a reference solution."""
COUNTS = ("id_rows", "question_rows", "alike", "alike_splits")
Keyed = Literal["id", "question", "twins", "item"]


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


def rules(limits: ValidationSettings, tokens: bool = False, answers: bool = True) -> list[Rule]:
    """The suite. A missing cell breaks its own rule only, not the others of its column.

    Args:
        answers: whether every row needs one; the tasks of an environment do not.
    """
    found = [
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
        _alone("no leakage between splits", "alike_splits",
               "near-duplicates are in one split, whatever their answers", "leak",
               "the question is nearly that of {earlier}, which is in another split", "item"),
    ]  # fmt: skip
    return found if answers else [rule for rule in found if rule.column != "answer"]


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
