"""Files: whole or not at all, the same bytes for the same value, and errors that name the line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError

from components import directories, files
from components.errors import InputError, MachineError
from tests.code_graph import ROOT

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(TEXT, JSON_VALUES, max_size=3), max_size=5)


def fail(number: int = errno.ENOSPC):
    """A system call that fails."""

    def call(*_args, **_options):
        raise OSError(number, os.strerror(number))

    return call


def interrupt(*_args, **_options):
    raise KeyboardInterrupt


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Writing


def test_a_file_is_written_with_its_folders_and_no_other_file(tmp_path):
    files.write_text(tmp_path / "a" / "b" / "file.txt", "grüße\n")
    assert (tmp_path / "a" / "b" / "file.txt").read_bytes() == "grüße\n".encode()
    assert names(tmp_path / "a" / "b") == ["file.txt"]


def test_a_written_file_can_be_read_by_others(tmp_path):
    files.write_text(tmp_path / "file.txt", "")
    assert (tmp_path / "file.txt").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_content_and_no_temporary_file(tmp_path, monkeypatch, call):
    path = tmp_path / "file.txt"
    files.write_text(path, "old")
    monkeypatch.setattr(os, call, fail())
    with pytest.raises(MachineError, match=r"cannot write: No space left[^$]*df -h"):
        files.write_text(path, "new")
    monkeypatch.setattr(os, call, interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_text(path, "new")
    assert (path.read_text(), names(tmp_path)) == ("old", ["file.txt"])


@pytest.mark.parametrize(
    "write", [lambda path: files.write_text(path, "x"), lambda path: directories.write_directory(path, lambda _: None)]
)
def test_a_read_only_disk_is_an_error_that_names_the_path(tmp_path, monkeypatch, write):
    for function in ("mkstemp", "mkdtemp"):
        monkeypatch.setattr(tempfile, function, fail(errno.EROFS))
    with pytest.raises(MachineError, match="Read-only file system") as caught:
        write(tmp_path / "target")
    assert caught.value.where == str(tmp_path / "target")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_an_error(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(InputError, match="cannot write: Permission denied"):
        files.write_text(tmp_path / "file.txt", "x")


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path):
    (tmp_path / "a").write_text("")
    for write in (files.write_json, files.append_line):
        with pytest.raises(InputError, match="cannot"):
            write(tmp_path / "a" / "file.json", {})


@settings(max_examples=40, deadline=None)  # each example flushes to the disk
@given(JSON_VALUES)
def test_json_comes_back_as_it_was_written(value):
    with tempfile.TemporaryDirectory() as folder:
        files.write_json(Path(folder) / "value.json", value)
        assert files.read_json(Path(folder) / "value.json") == value


@settings(max_examples=40, deadline=None)  # each example flushes to the disk
@given(ROWS)
def test_rows_come_back_as_they_were_written(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        files.write_jsonl(path, rows)
        assert list(files.read_jsonl(path)) == rows
        assert path.read_bytes().count(b"\n") == len(rows)


def test_equal_values_give_equal_bytes_whatever_the_order_of_their_keys():
    assert files.dump_json({"b": 1, "a": [2.5]}) == files.dump_json({"a": [2.5], "b": 1})
    assert files.dump_line({"b": 1, "a": 2}) == '{"a": 2, "b": 1}\n'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_refused_before_anything_is_written(tmp_path, value):
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(tmp_path / "value.json", {"x": value})
    assert names(tmp_path) == []


# Reading


def test_a_missing_file_says_what_to_do(tmp_path):
    for read in (files.read_json, lambda path: list(files.read_jsonl(path))):
        with pytest.raises(InputError, match="file not found") as caught:
            read(tmp_path / "none")
        assert (caught.value.where, bool(caught.value.how)) == (str(tmp_path / "none"), True)


def test_malformed_json_names_the_line(tmp_path):
    (tmp_path / "value.json").write_text('{\n"a": 1,\n"b" 2\n}')
    with pytest.raises(InputError, match="not valid JSON") as caught:
        files.read_json(tmp_path / "value.json")
    assert caught.value.where == f"{tmp_path / 'value.json'}:3"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{'a': 1}", "not valid JSON.*at column 2"),
        ('{"a": 1', "not valid JSON"),
        ("[1]", "expected a JSON object, found list"),
        ("null", "expected a JSON object, found NoneType"),
    ],
)
def test_a_malformed_line_is_named_and_the_lines_before_it_are_read(tmp_path, line, problem):
    (tmp_path / "rows.jsonl").write_text(f'{{"a": 1}}\n\n{line}\n{{"a": 2}}\n')
    rows = files.read_numbered_jsonl(tmp_path / "rows.jsonl")
    assert next(rows) == (1, {"a": 1})
    with pytest.raises(InputError, match=problem) as caught:
        next(rows)
    assert caught.value.where == f"{tmp_path / 'rows.jsonl'}:3"


def test_blank_lines_count_as_lines_but_not_as_rows(tmp_path):
    (tmp_path / "rows.jsonl").write_text('\n{"a": 1}\n   \n{"a": 2}')
    assert list(files.read_numbered_jsonl(tmp_path / "rows.jsonl")) == [(2, {"a": 1}), (4, {"a": 2})]


def test_what_is_not_utf8_says_so(tmp_path):
    (tmp_path / "latin").write_bytes('{"a": "é"}'.encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8 text \\(byte 7\\)"):
        files.read_text(tmp_path / "latin")
    with pytest.raises(InputError, match="not UTF-8"):
        list(files.read_jsonl(tmp_path / "latin"))


@pytest.mark.parametrize("read", [files.read_text, lambda path: list(files.read_jsonl(path)), files.sha256_file])
def test_a_folder_where_a_file_should_be_is_an_error(tmp_path, read):
    with pytest.raises(InputError, match="is a folder, not a file"):
        read(tmp_path)


# Append-only logs


def test_appended_lines_can_be_read_and_cut_back(tmp_path):
    path = tmp_path / "state" / "log.jsonl"
    for step in range(3):
        files.append_line(path, {"step": step})
    assert files.keep_rows(path, 2) == [{"step": 0}, {"step": 1}]
    assert list(files.read_jsonl(path)) == [{"step": 0}, {"step": 1}]


def test_a_torn_tail_is_cut_off_with_the_rows_that_are_not_kept(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step": 0}\n{"step": 1}\n{"st\xc3')
    assert files.keep_rows(path, 2) == [{"step": 0}, {"step": 1}]
    files.append_line(path, {"step": 2})
    assert [row["step"] for row in files.read_jsonl(path)] == [0, 1, 2]


def test_keeping_nothing_removes_the_log_whether_or_not_it_is_there(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("torn")
    assert [files.keep_rows(path, 0), files.keep_rows(path, 0), path.exists()] == [[], [], False]


@pytest.mark.parametrize("tail", [b"", b'{"st\xc3', b"\n\n"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_log_is_cut_in_place_to_the_bytes_of_its_first_rows(tmp_path, count, tail):
    path = tmp_path / "log.jsonl"
    for step in range(3):
        files.append_line(path, {"step": step, "signals": {"é": 0.1 + step, "none": None}})
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    files.cut_rows(path, count)
    assert (path.read_bytes() if path.exists() else b"") == b"".join(whole.splitlines(keepends=True)[:count])


def test_a_row_that_lacks_only_its_end_gets_it_when_the_log_is_cut(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step": 0}\n{"step": 1}')
    files.cut_rows(path, 2)
    files.append_line(path, {"step": 2})
    assert [row["step"] for row in files.read_jsonl(path)] == [0, 1, 2]


def test_a_log_with_fewer_rows_than_are_to_be_kept_is_not_cut(tmp_path):
    path = tmp_path / "log.jsonl"
    files.append_line(path, {"step": 0})
    with pytest.raises(InputError, match="expected 2 rows, found 1"):
        files.cut_rows(path, 2)
    assert list(files.read_jsonl(path)) == [{"step": 0}]


def test_a_full_disk_while_appending_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", fail())
    with pytest.raises(MachineError, match="cannot append to: No space left"):
        files.append_line(tmp_path / "log.jsonl", {})


# Folders


def fill_with(**contents: str):
    def fill(folder: Path) -> None:
        for name, text in contents.items():
            (folder / name).write_text(text)

    return fill


def test_a_folder_is_replaced_whole(tmp_path):
    path = tmp_path / "out"
    directories.write_directory(path, fill_with(a="1", b="2"))
    directories.write_directory(path, fill_with(b="3"))
    assert {p.name: p.read_text() for p in path.iterdir()} == {"b": "3"}
    assert (names(tmp_path), path.stat().st_mode & 0o777) == (["out"], 0o755)


@pytest.mark.parametrize("error", [ValueError("half way"), KeyboardInterrupt()])
def test_a_folder_that_could_not_be_filled_leaves_the_old_one(tmp_path, error):
    path = tmp_path / "out"
    directories.write_directory(path, fill_with(a="old"))

    def fill(folder: Path) -> None:
        (folder / "a").write_text("new")
        raise error

    with pytest.raises(type(error)):
        directories.write_directory(path, fill)
    assert ((path / "a").read_text(), names(tmp_path)) == ("old", ["out"])


@pytest.mark.parametrize("failing", [0, 1])
def test_a_folder_that_could_not_be_renamed_leaves_the_old_one(tmp_path, monkeypatch, failing):
    path, replace, calls = tmp_path / "out", os.replace, []
    directories.write_directory(path, fill_with(a="old"))

    def sometimes(source, target):
        calls.append(target)
        if len(calls) == failing + 1:
            fail()()
        replace(source, target)

    monkeypatch.setattr(os, "replace", sometimes)
    with pytest.raises(MachineError, match="No space left"):
        directories.write_directory(path, fill_with(a="new"))
    assert ((path / "a").read_text(), names(tmp_path)) == ("old", ["out"])


# Digests


def test_the_digest_of_a_folder_depends_on_names_and_contents_and_not_on_the_order_of_writing(tmp_path):
    directories.write_directory(tmp_path / "one", fill_with(a="1", b="2"))
    directories.write_directory(tmp_path / "two", fill_with(b="2", a="1"))
    directories.write_directory(tmp_path / "renamed", fill_with(a="1", c="2"))
    directories.write_directory(tmp_path / "changed", fill_with(a="1", b="3"))
    directories.write_directory(tmp_path / "swapped", fill_with(a="2", b="1"))
    one, two, *others = (files.sha256_tree(tmp_path / name) for name in ("one", "two", "renamed", "changed", "swapped"))
    assert one == two
    assert len({one, *others}) == 4


def test_the_manifest_lists_nested_files_by_relative_path(tmp_path):
    files.write_text(tmp_path / "b" / "c.txt", "x")
    files.write_text(tmp_path / "a.txt", "")
    assert list(files.manifest(tmp_path)) == ["a.txt", "b/c.txt"]
    assert (
        files.manifest(tmp_path)["b/c.txt"] == files.sha256_bytes(b"x") == files.sha256_path(tmp_path / "b" / "c.txt")
    )


def test_a_symbolic_link_is_refused_where_content_is_digested(tmp_path):
    (tmp_path / "link").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="symbolic link"):
        files.sha256_path(tmp_path)


def test_a_name_that_is_not_utf_8_is_refused_where_content_is_digested(tmp_path):
    (tmp_path / os.fsdecode(b"\xff.txt")).touch()
    with pytest.raises(InputError, match="not UTF-8") as caught:
        files.sha256_tree(tmp_path)
    assert str(caught.value).encode()


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="folder not found"):
        files.manifest(tmp_path / "none")


@pytest.mark.parametrize("line", ["[" * 100_000, "1" * 5_000])
def test_a_line_that_json_cannot_even_parse_is_named(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n' + line + "\n")
    with pytest.raises(InputError, match="not JSON that can be read") as refused:
        list(files.read_jsonl(path))
    assert refused.value.where == f"{path}:2"


def test_a_full_disk_under_safetensors_is_an_error_of_the_machine(tmp_path):
    def fill(folder):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    with pytest.raises(MachineError, match="No space left on device"):
        directories.write_directory(tmp_path / "checkpoint", fill)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replaces", [False, True])
def test_two_writers_of_a_folder_at_a_time_do_not_disturb_each_other(tmp_path, replaces):
    path = tmp_path / "out"
    if replaces:
        directories.write_directory(path, fill_with(a="first"))

    def fill(folder: Path) -> None:
        files.write_text(folder / "a", "slow")
        code = "import sys, pathlib; from components.directories import write_directory as write\n"
        code += "write(pathlib.Path(sys.argv[1]), lambda folder: (folder / 'a').write_text('fast'))"
        subprocess.run([sys.executable, "-c", code, path], check=True, cwd=ROOT)
        assert (path / "a").read_text() == "fast"

    directories.write_directory(path, fill)
    assert ((path / "a").read_text(), names(tmp_path)) == ("slow", ["out"])


def test_what_a_kill_left_of_a_folder_is_put_in_order(tmp_path):
    target = tmp_path / "out"
    retired = tmp_path / ".out.abcdefgh.old"
    retired.mkdir()
    (retired / "kept").write_text("old")
    (tmp_path / ".out.ijkl_mn0").mkdir()
    (tmp_path / ".out.notes").mkdir()  # no temporary folder

    def fail(folder):
        raise RuntimeError("stop here")

    with pytest.raises(RuntimeError):
        directories.write_directory(target, fail)
    assert (target / "kept").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.notes", "out"]
