"""Readers: every row becomes a candidate with its line; what cannot be read is named."""

from __future__ import annotations

import datetime
import json
import math
from pathlib import Path
from typing import Any, get_args

import pyarrow
import pytest
from pyarrow import parquet

from components.config.sources import FileSource
from components.config.tasks import ArithmeticSource
from components.data import SOURCES
from components.data.candidates import Candidate
from components.errors import InputError
from components.files import sha256_file
from components.tasks import TASKS
from components.tasks.identity import content_id

GSM8K = Path(__file__).parents[3] / "shared" / "data" / "gsm8k_train.jsonl"
ROWS: list[dict[str, Any]] = [
    {"question": "What is 6 x 7?", "answer": "6 x 7 = 42\n#### 42", "level": 2, "topic": "times"},
    {"question": " What is 1 + 1? ", "answer": "#### 2", "level": 1.5, "topic": "plus"},
]


def write_lines(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def read(path: Path, **options: Any) -> list[Candidate]:
    kind = options.pop("kind", "jsonl")
    return list(SOURCES[kind](FileSource(kind=kind, path=path, **options), 0))


def test_every_kind_of_source_has_a_reader():
    kinds = {*get_args(FileSource.model_fields["kind"].annotation), ArithmeticSource().kind}
    assert kinds == set(SOURCES)


def test_generated_prompts_come_from_the_task_and_have_no_line():
    source = ArithmeticSource(rows=50)
    found = list(SOURCES["generated"](source, 7))
    assert [candidate.prompt for candidate in found] == TASKS["arithmetic"](source, 7)
    assert {candidate.line for candidate in found} == {None}


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_row_becomes_a_prompt_by_the_named_columns(tmp_path, kind):
    path = tmp_path / f"maths.{kind}"
    if kind == "jsonl":
        write_lines(path, *ROWS)
    else:
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    columns = {"answer_pattern": r"####\s*(.+)$", "family": "topic", "difficulty": "level"}
    first, second = read(path, kind=kind, **columns)
    assert first.prompt.to_dict() == {
        "id": content_id("maths", "What is 6 x 7?"),
        "text": "What is 6 x 7?",
        "answer": "42",
        "solution": "6 x 7 = 42\n#### 42",
        "demonstration": "6 x 7 = 42\n#### 42",
        "task": "maths",
        "source": "maths",
        "family": "times",
        "difficulty": 2.0,
        "cluster": -1,
    }
    assert (first.line, second.line) == (1, 2)
    assert (second.prompt.text, second.prompt.difficulty) == ("What is 1 + 1?", 1.5)


def test_without_optional_columns_the_source_is_the_family_and_the_whole_answer_counts(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", {"q": "6 x 7", "a": 42})
    [found] = read(path, question="q", answer="a", name="times")
    assert (found.prompt.answer, found.prompt.solution, found.prompt.family) == ("42", "42", "times")


def test_the_id_column_gives_the_id(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", {**ROWS[0], "key": 17})
    assert read(path, id="key")[0].prompt.id == "17"


def test_blank_lines_are_skipped_but_counted(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", ROWS[0], "", "  ", ROWS[1])
    assert [candidate.line for candidate in read(path)] == [1, 4]


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, ""), ("  ", ""), (["a"], ""), (True, ""), ("\ud800", ""), (72, "72"), (0.5, "0.5"), (" é ", "é")],
)
def test_what_is_not_text_is_left_empty_for_validation_to_name(tmp_path, cell, text):
    path = write_lines(tmp_path / "a.jsonl", {"question": cell, "answer": "1"})
    assert read(path)[0].prompt.text == text


@pytest.mark.parametrize("cell", [None, "hard", True, "nan", "1e999", [1]])
def test_a_difficulty_that_is_no_finite_number_is_nan(tmp_path, cell):
    path = write_lines(tmp_path / "a.jsonl", {**ROWS[0], "d": cell})
    assert math.isnan(read(path, difficulty="d")[0].prompt.difficulty)


def test_the_kept_row_is_json_whatever_the_cells_were(tmp_path):
    path = tmp_path / "a.parquet"
    rows = [{"question": "q", "answer": "a", "d": datetime.date(2026, 1, 2), "other": b"\xff"}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    [found] = read(path, kind="parquet", difficulty="d")
    assert found.row == {"question": "q", "answer": "a", "d": "2026-01-02"}
    surrogate = read(write_lines(tmp_path / "b.jsonl", {"question": "\ud800", "answer": "1"}))[0]
    json.dumps(surrogate.row, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"question": "a", ', "not valid JSON"),
        ("[1, 2]", "expected a JSON object, found list"),
        ('{"question": "a"}', "missing column 'answer'"),
        ('{"text": "a"}', "missing columns 'question', 'answer'"),
    ],
)
def test_a_line_that_cannot_be_a_row_stops_at_once_and_is_named(tmp_path, line, what):
    path = write_lines(tmp_path / "a.jsonl", ROWS[0], line, ROWS[1])
    with pytest.raises(InputError, match=what) as caught:
        read(path)
    assert caught.value.where == f"{path}:2"


def test_missing_columns_name_those_that_exist(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", {"problem": "a", "answer": "1"})
    with pytest.raises(InputError) as caught:
        read(path)
    assert "found: 'problem', 'answer'" in (caught.value.how or "")


def test_a_parquet_file_without_a_column_or_that_is_none_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([{"problem": "a"}]), path)
    with pytest.raises(InputError, match="missing columns 'question', 'answer'"):
        read(path, kind="parquet")
    write_lines(path, ROWS[0])
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read(path, kind="parquet")


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_missing_file_is_an_error(tmp_path, kind):
    with pytest.raises(InputError, match="not found"):
        read(tmp_path / "none", kind=kind)


@pytest.mark.parametrize("pattern", ["(", "####"])
def test_an_answer_pattern_must_be_a_regular_expression_with_a_group(tmp_path, pattern):
    with pytest.raises(InputError) as caught:
        read(write_lines(tmp_path / "a.jsonl", ROWS[0]), answer_pattern=pattern)
    assert caught.value.where == "data.source.answer_pattern"


def test_an_answer_that_the_pattern_does_not_find_is_empty(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", {"question": "q", "answer": "no marker"})
    assert read(path, answer_pattern=r"####\s*(.+)$")[0].prompt.answer == ""


def test_a_pinned_digest_is_held_to(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", *ROWS)
    pinned = sha256_file(path)
    assert len(read(path, sha256=pinned)) == 2
    write_lines(path, *ROWS, ROWS[0])
    with pytest.raises(InputError, match="content has changed"):
        read(path, sha256=pinned)


@pytest.mark.skipif(not GSM8K.exists(), reason="../shared/data/gsm8k_train.jsonl is absent")
def test_all_of_gsm8k_is_read_in_its_published_form():
    found = read(GSM8K, name="gsm8k", answer_pattern=r"####\s*(.+)$")
    assert len(found) == 7473
    assert len({candidate.prompt.id for candidate in found}) == 7473
    assert found[0].prompt.answer == "72"
    assert all(candidate.prompt.answer for candidate in found)
