"""Readers: every row becomes a candidate with its line; what cannot be read is named."""

from __future__ import annotations

import datetime
import json
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from components.config.sources import FileSource
from components.config.tasks import ArithmeticSource
from components.content_id import content_id
from components.data import sources
from components.data.candidates import Candidate, Fault
from components.data.codes import REASONS
from components.data.sources import SOURCES
from components.errors import InputError
from components.files import sha256_file
from components.tasks import TASKS
from components.types import Prompt

GSM8K = Path(__file__).parents[3] / "shared" / "data" / "gsm8k_train.jsonl"
ROWS: list[dict[str, Any]] = [
    {"question": "What is 6 x 7?", "answer": "6 x 7 = 42\n#### 42", "level": 2, "topic": "times"},
    {"question": " What is 1 + 1? ", "answer": "#### 2", "level": 1.5, "topic": "plus"},
]


def write_lines(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    """As JSON lines or as Parquet, by the name of the file."""
    if path.suffix == ".jsonl":
        return write_lines(path, *rows)
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    return path


def read(path: Path, **options: Any) -> list[Candidate]:
    kind = options.pop("kind", "jsonl")
    return list(SOURCES[kind](FileSource(kind=kind, path=path, **options), 0))


def test_every_kind_of_source_has_a_reader():
    kinds = {
        *get_args(FileSource.model_fields["kind"].annotation),
        ArithmeticSource().kind,
        "reasoning_gym",
        "verifiers",
        "python",
    }
    assert kinds == set(SOURCES)


def test_generated_prompts_come_from_the_task_and_have_no_line():
    source = ArithmeticSource(rows=50)
    found = list(SOURCES["generated"](source, 7))
    assert [candidate.prompt for candidate in found] == TASKS["arithmetic"](source, 7)
    assert {candidate.line for candidate in found} == {None}


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_row_becomes_a_prompt_by_the_named_columns(tmp_path, kind):
    path = write_rows(tmp_path / f"maths.{kind}", *ROWS)
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
    row = {"question": "q", "answer": "a", "d": datetime.date(2026, 1, 2), "other": b"\xff"}
    [found] = read(write_rows(tmp_path / "a.parquet", row), kind="parquet", difficulty="d")
    assert found.row == {"question": "q", "answer": "a", "d": "2026-01-02"}
    surrogate = read(write_lines(tmp_path / "b.jsonl", {"question": "\ud800", "answer": "1"}))[0]
    json.dumps(surrogate.row, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (
            '{"question": "a", ',
            "not_json",
            "not valid JSON: Expecting property name enclosed in double quotes at column",
        ),
        ('{"question": 1' + "0" * 5000 + "}", "not_json", "not JSON that can be read: Exceeds the limit"),
        ("[1, 2]", "not_object", "expected a JSON object, found list"),
        ('{"question": "a"}', "missing_column", "missing column 'answer' (found: 'question')"),
        ('{"text": "a"}', "missing_column", "missing columns 'question', 'answer' (found: 'text')"),
    ],
)
def test_a_line_that_cannot_be_a_row_has_a_fault_with_its_code_and_the_others_are_read(tmp_path, line, code, words):
    found = read(write_lines(tmp_path / "a.jsonl", ROWS[0], line, ROWS[1]))
    assert [(c.line, c.fault.code if c.fault else None) for c in found] == [(1, None), (2, code), (3, None)]
    assert found[1].fault is not None and found[1].fault.words.startswith(words)
    assert found[1].prompt == Prompt("", "", "", "")


def test_bytes_that_are_no_text_and_lines_without_end_are_faults_too(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_LINE", 200)
    path = tmp_path / "a.jsonl"
    row = json.dumps(ROWS[1]).encode()
    path.write_bytes(b'{"question": "\xff"}\n' + b'{"question": "' + b"x" * 999 + b'"}\n' + row)
    found = read(path)
    assert [(c.line, c.fault and c.fault.code) for c in found] == [(1, "not_json"), (2, "too_long"), (3, None)]
    assert len(str(found[1].row["line"])) <= 500


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(ROWS[0]).encode())
    assert read(path)[0].fault is None


@pytest.mark.parametrize(("cell", "odd"), [(["a"], True), (True, True), ("\ud800", True), (None, False), ("", False)])
def test_a_cell_that_is_no_text_is_distinguished_from_an_empty_one(tmp_path, cell, odd):
    [found] = read(write_lines(tmp_path / "a.jsonl", {"question": cell, "answer": "1"}))
    assert ("question" in found.not_text) is odd


def test_a_parquet_file_without_a_column_or_that_is_none_is_an_error(tmp_path):
    path = write_rows(tmp_path / "a.parquet", {"problem": "a"})
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
    with pytest.raises(ValueError, match=r"answer_pattern\n.*(no regular expression|has no group)"):
        read(write_lines(tmp_path / "a.jsonl", ROWS[0]), answer_pattern=pattern)


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


def save_to_disk(folder: Path, *files: list[dict[str, Any]]) -> Path:
    """What `datasets.Dataset.save_to_disk` leaves, as far as a reader is concerned."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05d}-of-{len(files):05d}.arrow" for i in range(len(files))]
    for name, rows in zip(names, files, strict=True):
        table = pyarrow.Table.from_pylist(rows)
        with pyarrow.OSFile(str(folder / name), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def test_a_folder_of_datasets_is_read_file_by_file_in_the_order_of_its_state(tmp_path):
    folder = save_to_disk(tmp_path / "saved", [ROWS[0]], [ROWS[1]])
    found = read(folder, kind="arrow", answer_pattern=r"####\s*(.+)$", difficulty="level")
    assert [(c.line, c.prompt.answer, c.prompt.difficulty) for c in found] == [(1, "42", 2.0), (2, "2", 1.5)]
    assert found[0].prompt.source == "saved"


def test_a_dictionary_of_splits_needs_the_name_of_one(tmp_path):
    for split, row in zip(("train", "test"), ROWS, strict=True):
        save_to_disk(tmp_path / "saved" / split, [row])
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert [c.prompt.text for c in read(tmp_path / "saved", kind="arrow", split="test")] == ["What is 1 + 1?"]
    for wrong in ("", "dev"):
        with pytest.raises(InputError) as caught:
            read(tmp_path / "saved", kind="arrow", split=wrong)
        assert (caught.value.where, caught.value.how) == ("data.source.split", "name one of: train, test")


@pytest.mark.parametrize("name", ["../outside.arrow", "/etc/passwd", None])
def test_a_saved_data_set_never_names_a_file_outside_its_folder(tmp_path, name):
    folder = save_to_disk(tmp_path / "saved", [ROWS[0]])
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    with pytest.raises(InputError, match="names a file outside its folder"):
        read(folder, kind="arrow")


def test_what_is_no_saved_data_set_is_named(tmp_path):
    (tmp_path / "saved").mkdir()
    with pytest.raises(InputError, match=r"there is no state.json"):
        read(tmp_path / "saved", kind="arrow")
    folder = save_to_disk(tmp_path / "other", [{"problem": "a"}])
    with pytest.raises(InputError, match="missing columns 'question', 'answer'"):
        read(folder, kind="arrow")
    (folder / "data-00000-of-00001.arrow").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="not a readable arrow file"):
        read(folder, kind="arrow")


def test_an_offset_that_leads_out_of_its_file_is_not_followed(tmp_path):
    folder = save_to_disk(tmp_path / "saved", ROWS)
    path = folder / "data-00000-of-00001.arrow"
    lengths = [len(row["question"]) for row in ROWS]
    offsets = struct.pack("<3i", 0, lengths[0], sum(lengths))
    assert path.read_bytes().count(offsets) == 1
    path.write_bytes(path.read_bytes().replace(offsets, struct.pack("<3i", 0, 2**30, sum(lengths))))
    with pytest.raises(InputError, match="not a readable arrow file"):
        read(folder, kind="arrow")


@pytest.mark.parametrize("options", [{"split": "train"}, {"format": "gsm8k", "answer_pattern": "(.)"}])
def test_settings_that_say_two_things_are_refused(tmp_path, options):
    with pytest.raises(ValidationError):
        FileSource(kind="jsonl", path=tmp_path, **options)


def test_the_published_form_of_gsm8k_is_a_format(tmp_path):
    published = {"question": "Clips?", "answer": "48/2 = <<48/2=24>>24 clips\n#### 1,024"}
    [found] = read(write_lines(tmp_path / "a.jsonl", published), format="gsm8k")
    assert (found.prompt.answer, found.prompt.solution) == ("1024", "48/2 = 24 clips\n#### 1,024")


@pytest.mark.skipif(not GSM8K.exists(), reason="../shared/data/gsm8k_train.jsonl is absent")
@pytest.mark.parametrize("options", [{"format": "gsm8k"}, {"answer_pattern": r"####\s*(.+)$"}])
def test_all_of_gsm8k_is_read_in_its_published_form(options):
    found = read(GSM8K, name="gsm8k", **options)
    assert len(found) == 7473
    assert len({candidate.prompt.id for candidate in found}) == 7473
    assert found[0].prompt.answer == "72"
    assert all(candidate.prompt.answer for candidate in found)


def test_what_the_datasets_library_itself_saves_is_read(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = [{"question": f"{i}+1=", "answer": str(i + 1)} for i in range(50)]
    whole = datasets.Dataset.from_list(rows)
    whole.select(range(40, 50)).shuffle(seed=1).save_to_disk(str(tmp_path / "selected"))
    datasets.DatasetDict({"train": whole, "test": whole.select([3])}).save_to_disk(str(tmp_path / "dict"))
    assert [c.prompt.text for c in read(tmp_path / "dict", kind="arrow", split="train")] == [
        r["question"] for r in rows
    ]
    assert [c.prompt.answer for c in read(tmp_path / "dict", kind="arrow", split="test")] == ["4"]
    assert sorted(c.prompt.answer for c in read(tmp_path / "selected", kind="arrow")) == [str(i) for i in range(41, 51)]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_numbers_that_are_none_count_as_missing(tmp_path, kind):
    rows = [{"question": f"q{i}", "answer": value} for i, value in enumerate((24.0, math.nan, math.inf, -math.inf))]
    found = read(write_rows(tmp_path / f"rows.{kind}", *rows), kind=kind)
    assert [(row.prompt.answer, row.not_text) for row in found] == [("24", frozenset()), *[("", frozenset())] * 3]


def test_a_decimal_is_a_number(tmp_path):
    cells = pyarrow.array([Decimal("24.50"), Decimal("0.0000001")], pyarrow.decimal128(12, 7))
    parquet.write_table(pyarrow.table({"question": ["a", "b"], "answer": cells}), tmp_path / "rows.parquet")
    found = read(tmp_path / "rows.parquet", kind="parquet", difficulty="answer")
    assert [(row.prompt.answer, row.prompt.difficulty) for row in found] == [("24.5000000", 24.5), ("0.0000001", 1e-7)]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (2**62, pyarrow.timestamp("us")),
        (1, pyarrow.timestamp("us", tz="Nowhere/Land")),
        (2**62, pyarrow.duration("s")),
        (2**31 - 1, pyarrow.date32()),
    ],
    ids=str,
)
@pytest.mark.parametrize("column", ["answer", "difficulty"])
def test_a_time_that_python_does_not_have_is_the_fault_of_its_row(tmp_path, cell, kind, column):
    table = {"question": ["a", "b"], "answer": ["1", "2"], "when": pyarrow.array([cell, None], kind)}
    parquet.write_table(pyarrow.table(table), tmp_path / "rows.parquet")
    bad, good = read(tmp_path / "rows.parquet", kind="parquet", **{column: "when"})
    assert bad.fault is not None and bad.fault.code == "not_text"
    assert bad.fault.words.startswith(f"the column 'when' holds a {kind} that cannot be read: ")
    assert (good.fault, good.prompt.text) == (None, "b")


def test_a_string_that_is_not_utf8_is_the_fault_of_its_row(tmp_path):
    bad = pyarrow.Array.from_buffers(
        pyarrow.string(),
        3,
        [None, pyarrow.py_buffer(np.array([0, 2, 4, 6], np.int32).tobytes()), pyarrow.py_buffer(b"ok\xff\xfeno")],
    )
    parquet.write_table(pyarrow.table({"question": bad, "answer": ["1", "2", "3"]}), tmp_path / "rows.parquet")
    found = read(tmp_path / "rows.parquet", kind="parquet")
    assert [row.prompt.text for row in found] == ["ok", "", "no"]
    assert found[1].fault == Fault("not_utf8", "the column 'question' is not UTF-8 text")
    assert (found[1].line, found[1].row["answer"]) == (2, "2")
    assert found[1].fault.code in REASONS


@pytest.mark.parametrize("origin", ["", " ", None, math.nan])
def test_a_row_without_its_origin_is_broken(tmp_path, origin):
    path = write_lines(tmp_path / "rows.jsonl", {"question": "q", "answer": "1", "from": origin})
    [row] = read(path, origin="from")
    assert row.fault == Fault("empty_origin", "the origin, column 'from', is empty")
    assert row.fault.code in REASONS
    assert read(path)[0].fault is None
