"""Validation names every broken row; sound rows are admitted, the others go to quarantine with reasons and codes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from components.config.data import DataSettings, SplitSettings, ValidationSettings
from components.config.policy import PolicySettings
from components.data import validation
from components.data.admission import Admission, Refused
from components.data.candidates import Candidate, Fault
from components.data.codes import REASONS
from components.data.judging import Judge
from components.data.likeness import key
from components.data.limits import check_limits
from components.data.rules import ACCEPTED, Row, rules
from components.data.splits import assign
from components.data.summary import Tally
from components.data.survey import shared, survey
from components.data.tokenizing import Reader
from components.data.validation import validate
from components.errors import InputError
from components.files import read_jsonl, write_jsonl
from components.types import Prompt
from tests.tiers import slow_but

LIMITS = ValidationSettings(max_question_chars=20, max_solution_chars=30)
SHARES = SplitSettings(sft=0.25, train=0.25, dev=0.25, test=0.25)
DATA = DataSettings(validation=LIMITS, splits=SHARES)
RULES = rules(LIMITS)


def prompt(number: int, **changes: Any) -> Prompt:
    sound = Prompt(
        id=f"id-{number}", text=f"{number} + 0", answer=str(number), solution=f"#### {number}", family="plus"
    )
    return replace(sound, **changes)


def candidates(*prompts: Prompt) -> list[Candidate]:
    return [Candidate(p, {"question": p.text}, line) for line, p in enumerate(prompts, start=1)]


def rows_of(found: list[Candidate], verdicts: dict[int, str] | None = None) -> list[Row]:
    """Rows with the keys and counts of the first pass."""
    seen = survey(found, DATA)
    rows = Judge(seen, shared(seen), None, Reader(PolicySettings()), LIMITS).rows(found, 0) or []
    said = [(verdicts or {}).get(i, ACCEPTED) if row.prompt.answer else None for i, row in enumerate(rows)]
    return [replace(row, verdict=verdict) for row, verdict in zip(rows, said, strict=True)]


def divided(rows: list[Row]) -> list[Row | Refused]:
    return list(Admission().divide(rows, validate(rows, RULES)))


def refused(found: list[Row | Refused]) -> dict[int | None, tuple[str, ...]]:
    return {row.candidate.line: row.reasons for row in found if isinstance(row, Refused)}


def codes(found: list[Row | Refused]) -> dict[int | None, tuple[str, ...]]:
    return {row.candidate.line: row.codes for row in found if isinstance(row, Refused)}


def test_sound_rows_are_all_admitted_in_order():
    found = divided(rows_of(candidates(*map(prompt, range(40)))))
    assert [row.prompt.id for row in found if isinstance(row, Row)] == [f"id-{i}" for i in range(40)]


UNFOUND = "the answer is missing, empty, not text, or not found by data.source.answer_pattern"
BROKEN: list[tuple[dict[str, Any], str, str]] = [
    ({"text": ""}, "empty_question", "the question is missing, empty or not text"),
    ({"answer": "", "solution": ""}, "empty_answer", UNFOUND),
    ({"answer": ""}, "answer_not_found", UNFOUND),
    ({"id": ""}, "empty_id", "the id is missing, empty or not text"),
    ({"difficulty": math.nan}, "bad_difficulty", "the difficulty is not a finite number"),
    ({"text": "x" * 21}, "too_long", "the question is longer than 20 characters"),
    ({"solution": "x" * 31}, "too_long", "the solution is longer than 30 characters"),
    ({"id": "id-0"}, "duplicate_id", "the id 'id-0' is taken by line 1"),
    ({"text": " 0  +  0", "answer": "$0$."}, "duplicate_question", "the question repeats that of line 1"),
    ({"text": " 0  +  0"}, "duplicate_question", "the question repeats that of line 1, with another answer"),
]
"""What is changed of a sound row, and the code and the reason for its quarantine."""


def test_broken_rows_are_quarantined_with_their_line_reason_and_code_and_no_other():
    changed = [prompt(number, **changes) for number, (changes, _, _) in enumerate(BROKEN, start=1)]
    found = divided(rows_of(candidates(prompt(0), *changed, prompt(99))))
    assert refused(found) == {line: (reason,) for line, (_, _, reason) in enumerate(BROKEN, start=2)}
    assert codes(found) == {line: (code,) for line, (_, code, _) in enumerate(BROKEN, start=2)}
    assert {code for _, code, _ in BROKEN} <= set(REASONS)
    assert [row.prompt.id for row in found if isinstance(row, Row)] == ["id-0", "id-99"]


def test_lines_that_are_no_rows_have_one_reason_and_are_counted_once():
    faults = ["not_json", "not_object", "missing_column", "too_long"]
    broken = [Candidate.broken(line, "{", Fault(code, f"is {code}")) for line, code in enumerate(faults, start=2)]
    rows = rows_of([*candidates(prompt(0)), *broken])
    findings = validate(rows, RULES)
    found = list(Admission().divide(rows, findings))
    assert refused(found) == {line: (f"is {code}",) for line, code in enumerate(faults, start=2)}
    assert codes(found) == {line: (code,) for line, code in enumerate(faults, start=2)}
    assert {f.rule.name for f in findings if f.broken} == {"row readable"}
    assert {f.checked for f in findings} == {1, 5}


def test_a_cell_that_is_no_text_has_a_code_of_its_own():
    [row] = rows_of([Candidate(prompt(0, text=""), {}, 1, not_text=frozenset({"question"}))])
    assert codes(divided([row])) == {1: ("not_text",)}


def test_a_reference_solution_that_the_verifier_refuses_is_quarantined():
    said = "timeout: no verdict within 5 s"
    rows = rows_of(candidates(prompt(0), prompt(1), prompt(2)), {1: said, 2: said})
    rows[2] = replace(rows[2], scorable=False)
    found = divided(rows)
    reason = f"the verifier does not accept the reference solution ({said})"
    assert refused(found) == {2: (reason,), 3: (reason,)}
    assert codes(found) == {2: ("verifier_refused",), 3: ("unscorable_reference",)}


def test_a_row_with_a_token_of_the_chat_template_is_quarantined():
    rows = [replace(row, forbidden="<|im_end|>") for row in rows_of(candidates(prompt(0)))]
    assert refused(divided(rows)) == {
        1: ("the row holds <|im_end|>, which the chat template uses for roles and turns",)
    }


def test_lengths_are_checked_in_tokens_too_where_there_is_a_tokenizer():
    limits = LIMITS.model_copy(update={"max_question_tokens": 3})
    rows = [
        replace(row, tokens=(size, 1))
        for size, row in zip((3, 4), rows_of(candidates(prompt(0), prompt(1))), strict=True)
    ]
    found = list(Admission().divide(rows, validate(rows, rules(limits, tokens=True))))
    assert refused(found) == {2: ("the question is longer than 3 tokens",)}


def test_a_row_collects_all_its_reasons():
    found = divided(rows_of(candidates(prompt(0, text="", difficulty=math.nan), prompt(1))))
    assert len(refused(found)[1]) == 2


def test_of_equal_rows_the_first_sound_one_stays():
    rows = rows_of(candidates(prompt(0, difficulty=math.nan), prompt(0), prompt(0)))
    assert list(refused(divided(rows))) == [1, 3]


def test_equal_rows_in_different_parts_are_found_too():
    rows = rows_of(candidates(prompt(0), prompt(1), prompt(0)))
    admission = Admission()
    found = [row for part in (rows[:2], rows[2:]) for row in admission.divide(part, validate(part, RULES))]
    assert list(refused(found)) == [3]


@pytest.mark.parametrize(("splits", "code"), [(("train", "train"), "near_duplicate"), (("train", "test"), "leak")])
def test_of_near_duplicates_the_later_one_goes_and_in_another_split_it_is_a_leak(splits, code):
    both = {"alike": 2, "alike_splits": len(set(splits))}
    rows = [
        Row(candidate, split, ACCEPTED, keys={"id": 1, "question": i, "twins": 7, "item": 7}, **both)
        for i, (candidate, split) in enumerate(zip(candidates(prompt(0), prompt(1)), splits, strict=True))
    ]
    found = divided(rows)
    assert codes(found) == {2: (code,)}
    assert "nearly that of line 1" in refused(found)[2][0]


def test_a_column_of_nothing_but_nulls_is_checked_too():
    found = divided(rows_of(candidates(prompt(0, answer=""), prompt(1, answer=""))))
    assert list(refused(found)) == [1, 2]


def test_every_rule_can_be_broken_and_has_a_code_with_a_remedy():
    """No expectation of the suite is decoration."""
    worst = Row(
        Candidate(prompt(1, text="x" * 21, solution="x" * 31, difficulty=math.nan), {}, 1), "dev", "wrong",
        keys={"id": 1, "question": 1, "twins": 1, "item": 1}, id_rows=2, question_rows=2, alike=2, alike_splits=2,
        tokens=(9999, 9999), forbidden="[INST]",
    )  # fmt: skip
    empty = Row(Candidate(Prompt("", "", "", ""), {}, 2), "dev", None, tokens=(0, 0))
    broken = Row(Candidate.broken(3, "", Fault("not_json", "no")), "dev", None, tokens=(0, 0))
    suite = rules(LIMITS, tokens=True)
    findings = validate([worst, empty, broken], suite)
    assert [finding.rule for finding in findings] == suite
    assert all(finding.broken for finding in findings)
    assert {rule.code for rule in suite} <= set(REASONS)


def test_a_check_that_could_not_run_is_never_a_pass(monkeypatch):
    monkeypatch.setattr(validation, "frame", without(validation.frame, "verdict"))
    with pytest.raises(RuntimeError, match="could not check 'reference solution accepted'"):
        validate(rows_of(candidates(prompt(0))), RULES)


@pytest.mark.parametrize("bad", slow_but([200, 201, 300], 201))
def test_any_number_of_rows_may_break_a_rule_and_each_keeps_its_own_value(bad):
    """Great Expectations lists no more than 200 of the values."""
    rows = rows_of(candidates(*map(prompt, range(300))), {i: f"wrong {i}" for i in range(bad)})
    rows = [
        replace(row, candidate=replace(row.candidate, prompt=replace(row.prompt, difficulty=math.nan))) for row in rows
    ]
    broken = {finding.rule.name: finding.broken for finding in validate(rows, RULES)}
    assert broken["reference solution accepted"] == {i: f"wrong {i}" for i in range(bad)}
    assert list(broken["difficulty present"]) == list(range(300))


def test_validations_in_several_threads_wait_for_each_other(monkeypatch):
    """The library has one context for the whole process."""
    sound, bad = rows_of(candidates(prompt(0))), rows_of(candidates(prompt(1, text="")))
    frame, within, most = validation.frame, list[int](), list[int]()

    def watched(rows: Sequence[Row]) -> Any:
        within.append(1)
        time.sleep(0.05)  # long enough for another thread to come in
        most.append(len(within))
        within.pop()
        return frame(rows)

    monkeypatch.setattr(validation, "frame", watched)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda rows: validate(rows, RULES), [sound, bad]))
    assert [sum(len(finding.broken) for finding in findings) for findings in found] == [0, 1]
    assert most == [1, 1]


def without(frame: Callable[..., Any], column: str) -> Callable[..., Any]:
    return lambda rows: frame(rows).drop(columns=column)


def tally(*found: Row | Refused) -> Tally:
    counted = Tally(RULES)
    for row in found:
        counted.refuse(row) if isinstance(row, Refused) else counted.admit(row)
    return counted


def test_too_many_bad_rows_stop_with_counts_lines_codes_and_the_file_of_all_reasons(tmp_path):
    found = divided(rows_of(candidates(*map(prompt, range(14)), *(prompt(i, answer="") for i in range(14, 21)))))
    settings = DataSettings(validation=ValidationSettings(max_quarantined=0.3), splits=SHARES)
    written, kept = tmp_path / "out" / "q.jsonl", tmp_path / ".state" / "quarantine.jsonl"
    write_jsonl(written, [row.to_dict() for row in found if isinstance(row, Refused)])
    with pytest.raises(InputError) as caught:
        check_limits(tally(*found), settings, written, kept)
    message = str(caught.value)
    assert "7 of 21 rows (33.3%) do not pass validation; data.validation.max_quarantined allows 30.0%" in message
    assert "line 15: the answer is missing, empty, not text, or" in message
    assert "and 2 more" in message
    assert "reasons: answer_not_found 7" in message
    assert (caught.value.how or "").startswith(REASONS["answer_not_found"])
    assert caught.value.where == str(kept)
    lines = list(read_jsonl(kept))
    assert len(lines) == 7
    assert set(lines[0]) == {"row", "line", "reasons", "codes"}


def test_quarantine_up_to_the_limit_is_tolerated(tmp_path):
    found = divided(rows_of(candidates(*map(prompt, range(39)), prompt(39, answer=""))))
    settings = DataSettings(validation=ValidationSettings(max_quarantined=1 / 40), splits=SHARES)
    check_limits(tally(*found), settings, tmp_path / "q", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_an_empty_split_is_an_error_that_names_it(tmp_path):
    rare = SplitSettings(sft=0.25, train=0.25, dev=0.499, test=0.001)
    rows = [replace(row, split="train") for row in rows_of(candidates(*map(prompt, range(40))))]
    with pytest.raises(InputError, match="no row of 40 falls into the sft split") as caught:
        check_limits(tally(*rows), DataSettings(splits=rare), tmp_path / "q", tmp_path / "kept")
    assert caught.value.where == "data.splits.sft"


def test_the_summary_counts_rows_splits_families_codes_and_lengths():
    rows = rows_of(candidates(prompt(0, family="a"), prompt(1, text="11 + 0"), prompt(2, text="")))
    summary = tally(*divided(rows)).summary()
    assert (summary["rows"], summary["quarantined"], summary["codes"]) == (3, 1, {"empty_question": 1})
    assert summary["families"] == {"a": 1, "plus": 1}
    assert summary["splits"][assign("0 + 0", SHARES)] >= 1
    assert summary["lengths"] == {
        "unit": "characters",
        "question": {"p50": 5, "p95": 5, "max": 6},
        "solution": {"p50": 6, "p95": 6, "max": 6},
    }


class Characters(Reader):
    """Counts characters for tokens."""

    tokens = True

    def __init__(self) -> None:
        self.forbidden = ()

    def lengths(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


def test_of_a_text_beyond_its_limit_in_characters_no_more_is_encoded():
    found = candidates(prompt(0), prompt(1, text="x" * 10**6, solution="y" * 10**6))
    seen = survey(found, DATA)
    rows = Judge(seen, shared(seen), None, Characters(), LIMITS).rows(found, 0)
    assert rows is not None and [row.tokens for row in rows] == [(5, 6), (20, 30)]


def test_keys_are_the_same_on_every_machine():
    assert key("47+38=") == 0xE05DFDB1C6F92A7B


def test_great_expectations_sends_no_analytics():
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
