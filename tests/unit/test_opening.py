"""What a person names as a file: regular files are read, anything else is refused at once with an error message."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from components import files, opening
from components.checkpoints.contents import check_content
from components.config import load
from components.config.pins import check_digest
from components.config.reading import read_mapping, read_tree
from components.config.sources import FileSource
from components.data.sources import arrow, jsonl, parquet
from components.errors import InputError
from components.health.readers.lines import read_head
from components.registry.keys import read_key
from tests.code_graph import ROOT

READERS: dict[str, Callable[[Path], object]] = {
    "text": files.read_text,
    "json": files.read_json,
    "lines": lambda path: list(files.read_jsonl(path)),
    "digest of a file": files.sha256_file,
    "pinned digest": lambda path: check_digest(path, None),
    "configuration": read_mapping,
    "private key": read_key,
    "log": read_head,
    "GGUF": lambda path: _gguf(path),
    "jsonl source": lambda path: list(jsonl(FileSource(kind="jsonl", path=path), 0)),
    "parquet source": lambda path: list(parquet(FileSource(kind="parquet", path=path), 0)),
    "arrow source": lambda path: list(arrow(FileSource(kind="arrow", path=path), 0)),
}


def _gguf(path: Path) -> object:
    from components.models.header import read_header

    return read_header(path)


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def plugged(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
    return folder / "socket"


def sparse(path: Path, size: int) -> Path:
    """A file of ``size`` bytes, which takes no room on the disk."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


@pytest.mark.timeout(20)
@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, reader):
    with pytest.raises(InputError, match="is a pipe, not a file") as caught:
        READERS[reader](pipe(tmp_path))
    assert (caught.value.where, bool(caught.value.how)) == (str(tmp_path / "pipe"), True)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("reader", READERS)
def test_a_device_without_end_is_refused(reader):
    with pytest.raises(InputError, match="is a device, not a file"):
        READERS[reader](Path("/dev/zero"))


@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"pinned digest", "arrow source"}))
def test_a_folder_is_called_one(tmp_path, reader):
    with pytest.raises(InputError, match="is a folder, not a file") as caught:
        READERS[reader](tmp_path)
    assert caught.value.how == "name a file inside it"


@pytest.mark.parametrize("reader", READERS)
def test_a_path_with_nul_or_of_5000_characters_is_an_error_in_words(reader):
    for path, problem in ((Path("a\0b"), "NUL"), (Path("x" * 5000), "too long: 5,000 bytes")):
        with pytest.raises((InputError, ValueError), match=problem) as caught:  # ValueError: that of a setting
            READERS[reader](path)
        assert len(str(caught.value)) < 1000


def test_a_socket_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot read: No such device|is a socket"):
        opening.open_regular(plugged(tmp_path))


def test_a_link_to_a_file_is_read_and_one_to_itself_is_an_error(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    assert files.read_text(tmp_path / "link") == "text"
    with pytest.raises(InputError, match="cannot read: Too many levels of symbolic links"):
        files.read_text(tmp_path / "circle")


def test_a_text_may_be_as_large_as_the_limit_and_no_larger(tmp_path):
    path = sparse(tmp_path / "text", opening.MOST_TEXT)
    assert len(files.read_text(path)) == opening.MOST_TEXT
    sparse(path, opening.MOST_TEXT + 1)
    with pytest.raises(InputError, match=r"larger than 64 MiB"):
        files.read_text(path)


@pytest.mark.timeout(20)
def test_a_huge_file_is_refused_before_it_fills_the_memory(tmp_path):
    path = sparse(tmp_path / "text", 2**40)
    for read in (files.read_text, files.read_json):
        with pytest.raises(InputError, match=r"larger than 64 MiB"):
            read(path)


def test_a_configuration_has_a_smaller_limit(tmp_path):
    with pytest.raises(InputError, match=r"larger than 1 MiB"):
        read_mapping(sparse(tmp_path / "a.yaml", opening.MOST_CONFIGURATION + 1))


@pytest.mark.parametrize(
    ("base", "problem"),
    [
        ("/dev/zero", "is a device"),
        (".", "is a folder"),
        ('"a\\0b"', "NUL"),
        ("x" * 300, "too long"),
        ("circle.yaml", "symbolic links"),
    ],
)
def test_what_a_configuration_extends_is_a_regular_file(tmp_path, base, problem):
    (tmp_path / "circle.yaml").symlink_to("circle.yaml")
    (tmp_path / "a.yaml").write_text(f"extends: {base}\n")
    with pytest.raises(InputError, match=problem):
        read_tree(tmp_path / "a.yaml")


def test_a_configuration_that_extends_itself_by_another_name_is_found_out(tmp_path):
    (tmp_path / "a.yaml").write_text("extends: b.yaml\n")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    with pytest.raises(InputError, match="extends itself"):
        read_tree(tmp_path / "a.yaml")


@pytest.mark.parametrize(("path", "problem"), [('"a\\0b"', "holds a NUL"), ("x" * 5000, "too long")])
def test_an_impossible_path_in_the_settings_names_the_setting(path, problem):
    source = f"data.source={{kind: jsonl, path: {path}}}"
    with pytest.raises(InputError, match=f"data.source.jsonl: path: .*{problem}"):
        load(ROOT / "configs/demo.yaml", [source])


def test_a_name_of_health_rules_that_no_file_can_have_is_an_error():
    with pytest.raises(InputError, match="health rules"):
        load(ROOT / "configs/demo.yaml", [f"health.rules_file={'x' * 5000}"])


def test_a_pipe_inside_a_digested_folder_is_an_error_and_not_left_out(tmp_path):
    pipe(tmp_path)
    with pytest.raises(InputError, match="is a pipe, not a file"):
        files.sha256_tree(tmp_path)


def test_a_file_of_a_checkpoint_that_became_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "README.md")
    with pytest.raises(InputError, match="is a pipe"):
        check_content(tmp_path / "README.md")


@pytest.mark.parametrize("module", ["components.command", "flows.cli"])
def test_a_working_folder_that_was_deleted_is_an_error_and_no_traceback(tmp_path, module):
    code = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); sys.argv = ['x', 'data']; "
        f"from {module} import main; sys.exit(main())"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert ("the working folder was deleted" in done.stderr, "Traceback" in done.stderr) == (True, False)
    assert done.returncode == 2
