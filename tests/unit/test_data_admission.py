"""Validation names every broken row; sound rows are admitted, the others go to quarantine."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from components.config.data import DataSettings, SplitSettings, ValidationSettings
from components.config.tasks import ArithmeticSource
from components.data import validation
from components.data.admission import Admission, admit, check_admitted, check_limits
from components.data.candidates import Candidate
from components.data.page import render
from components.data.splits import assign
from components.data.validation import ACCEPTED, Row, rules, validate
from components.errors import InputError
from components.files import read_jsonl
from components.types import Prompt

LIMITS = ValidationSettings(max_question_chars=20, max_solution_chars=30)
SHARES = SplitSettings(sft=0.25, train=0.25, dev=0.25, test=0.25)


def prompt(number: int, **changes: Any) -> Prompt:
    sound = Prompt(
        id=f"id-{number}", text=f"{number} + 0", answer=str(number), solution=f"#### {number}", family="plus"
    )
    return replace(sound, **changes)


def admission(*prompts: Prompt, verdicts: dict[int, str] | None = None) -> Admission:
    candidates = [Candidate(p, {"question": p.text}, line) for line, p in enumerate(prompts, start=1)]
    rows = [
        Row(p, assign(p.text, SHARES), (verdicts or {}).get(i, ACCEPTED) if p.answer else None)
        for i, p in enumerate(prompts)
    ]
    return admit(candidates, rows, validate(rows, LIMITS))


def refused(found: Admission) -> dict[int | None, tuple[str, ...]]:
    return {row.candidate.line: row.reasons for row in found.quarantine}


def test_sound_rows_are_all_admitted_in_order():
    found = admission(*map(prompt, range(40)))
    assert [p.id for p in found.prompts] == [f"id-{i}" for i in range(40)]
    assert {split: len(prompts) for split, prompts in found.splits.items()} == found.summary()["splits"]
    assert all(assign(p.text, SHARES) == split for split, prompts in found.splits.items() for p in prompts)
    assert found.summary() | {"expectations": [], "splits": {}} == {
        "rows": 40, "quarantined": 0, "success": True, "splits": {}, "families": {"plus": 40}, "expectations": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": ""}, "the question is missing, empty or not text"),
        (
            {"answer": ""},
            "the answer is missing, empty, not text, or not found by data.source.answer_pattern",
        ),
        ({"id": ""}, "the id is missing, empty or not text"),
        ({"difficulty": math.nan}, "the difficulty is not a finite number"),
        ({"text": "x" * 21}, "the question is longer than 20 characters"),
        ({"solution": "x" * 31}, "the solution is longer than 30 characters"),
        ({"id": "id-0"}, "the id 'id-0' is taken by an earlier row"),
        ({"text": " 0  +  0"}, "the question repeats an earlier row's"),
    ],
)
def test_one_broken_row_is_quarantined_with_its_line_and_reason(changes, reason):
    found = admission(prompt(0), prompt(1, **changes), prompt(2))
    assert refused(found) == {2: (reason,)}
    assert [p.id for p in found.prompts] == ["id-0", "id-2"]


def test_a_row_collects_all_its_reasons():
    found = admission(prompt(0, text="", difficulty=math.nan), prompt(1))
    assert len(refused(found)[1]) == 2


def test_a_reference_solution_that_the_verifier_refuses_is_quarantined():
    found = admission(prompt(0), prompt(1), verdicts={1: "timeout: no verdict within 5 s"})
    assert refused(found) == {
        2: ("the verifier does not accept the reference solution (timeout: no verdict within 5 s)",)
    }


def test_of_equal_rows_the_first_sound_one_stays():
    found = admission(prompt(0, difficulty=math.nan), prompt(0), prompt(0))
    assert list(refused(found)) == [1, 3]
    assert found.summary()["expectations"][4] == {
        "name": "id unique", "column": "id", "success": False, "checked": 3, "unexpected": 3,
        "detail": "no two rows have the same id",
    }  # fmt: skip


def test_equal_questions_in_two_splits_are_leakage():
    rows = [Row(prompt(0), "train", ACCEPTED), Row(prompt(1, text="0  + 0"), "test", ACCEPTED)]
    leakage = validate(rows, LIMITS)[-1]
    assert (leakage.rule.name, leakage.broken) == ("no leakage between splits", {0: 2, 1: 2})


def test_a_column_of_nothing_but_nulls_is_checked_too():
    found = admission(prompt(0, answer=""), prompt(1, answer=""))
    assert list(refused(found)) == [1, 2]


def test_every_rule_can_be_broken():
    """No expectation of the suite is decoration."""
    rows = [
        Row(prompt(0, difficulty=math.nan, solution="x" * 31), "train", "wrong"),
        Row(prompt(0), "test", ACCEPTED),
        Row(Prompt("", "", "", ""), "dev", None),
        Row(prompt(1, text="x" * 21), "dev", ACCEPTED),
    ]
    findings = validate(rows, LIMITS)
    assert [finding.rule for finding in findings] == rules(LIMITS)
    assert all(finding.broken and finding.checked == 4 for finding in findings)


def test_what_was_admitted_is_validated_again():
    data = DataSettings(validation=LIMITS)
    sound = admission(prompt(0), prompt(1))
    check_admitted(sound, data)
    with pytest.raises(RuntimeError, match="admitted rows break 'id unique'"):
        check_admitted(replace(sound, admitted=[*sound.admitted, sound.admitted[0]]), data)


def test_a_check_that_could_not_run_is_never_a_pass(monkeypatch):
    monkeypatch.setattr(validation, "frame", without(validation.frame, "verdict"))
    with pytest.raises(RuntimeError, match="could not check 'reference solution accepted'"):
        validate([Row(prompt(0), "train", ACCEPTED)], LIMITS)


def without(frame: Callable[..., Any], column: str) -> Callable[..., Any]:
    return lambda rows: frame(rows).drop(columns=column)


def test_too_many_bad_rows_stop_with_counts_lines_and_the_file_of_all_reasons(tmp_path):
    found = admission(*map(prompt, range(14)), *(prompt(i, answer="") for i in range(14, 21)))
    settings = DataSettings(validation=ValidationSettings(max_quarantined=0.3), splits=SHARES)
    with pytest.raises(InputError) as caught:
        check_limits(found, settings, tmp_path / "quarantine.jsonl")
    message = str(caught.value)
    assert "7 of 21 rows (33.3%) do not pass validation; data.validation.max_quarantined allows 30.0%" in message
    assert "line 15: the answer is missing, empty, not text, or" in message
    assert "and 2 more" in message
    assert caught.value.where == str(tmp_path / "quarantine.jsonl")
    kept = list(read_jsonl(tmp_path / "quarantine.jsonl"))
    assert len(kept) == 7
    assert set(kept[0]) == {"row", "line", "reasons"}


def test_quarantine_up_to_the_limit_is_tolerated(tmp_path):
    found = admission(*map(prompt, range(39)), prompt(39, answer=""))
    settings = DataSettings(validation=ValidationSettings(max_quarantined=1 / 40), splits=SHARES)
    check_limits(found, settings, tmp_path / "quarantine.jsonl")
    assert not (tmp_path / "quarantine.jsonl").exists()


def test_an_empty_split_is_an_error_that_names_it(tmp_path):
    rare = SplitSettings(sft=0.25, train=0.25, dev=0.499, test=0.001)
    with pytest.raises(InputError, match="no row of 40 falls into the sft split") as caught:
        check_limits(only_split("train"), DataSettings(splits=rare), tmp_path / "q")
    assert caught.value.where == "data.splits.sft"


def only_split(split: Any) -> Admission:
    return Admission([], [Row(prompt(i), split, ACCEPTED) for i in range(40)], [])


def test_the_page_is_escaped_offline_and_deterministic():
    found = admission(prompt(0, text="<b>&"), prompt(1), prompt(2, text="<script>alert(1)</script>"))
    page = render(found, ArithmeticSource())
    assert page == render(found, ArithmeticSource())
    assert "2 of 3 rows admitted" in page
    assert "&lt;b&gt;&amp;" in page and "<script" not in page
    assert "http:" not in page and "https:" not in page
    assert "the question is longer than 20 characters" in page


def test_great_expectations_sends_no_analytics():
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
