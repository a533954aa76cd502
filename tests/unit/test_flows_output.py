"""What commands print arrives, or its loss is said in one message: full disks, readers that leave, closed streams."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from flows.cli import main
from flows.display.output import EXIT_NO_READER
from tests.code_graph import ROOT

COMMANDS = (["--help"], ["keys", "--help"], ["rules"], ["params"])
"""By typer, by rich, and by print."""


def full() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def left() -> int:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@contextmanager
def replaced(monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[], int]) -> Iterator[None]:
    """``sys.stdout`` or ``sys.stderr`` is this file, as it is when a shell redirects it."""
    with io.TextIOWrapper(io.FileIO(make(), "w"), "utf-8") as stream, monkeypatch.context() as here:
        here.setattr(sys, name, stream)
        here.setattr(sys, f"__{name}__", stream)
        yield


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["evenkeel", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("make", "code", "said"),
    [
        (full, 2, ["cannot write what was found: No space left on device", "  where: standard output"]),
        (left, EXIT_NO_READER, []),
    ],
    ids=["full", "left"],
)
def test_an_output_that_cannot_be_written_is_no_bug(monkeypatch, capsys, arguments, make, code, said):
    monkeypatch.chdir(ROOT)
    with replaced(monkeypatch, "stdout", make):
        assert call(monkeypatch, *arguments) == code
    assert capsys.readouterr().err.splitlines()[:2] == said


@pytest.mark.parametrize("arguments", [["show", "nothing"], ["no-such-command"]], ids=" ".join)
def test_the_exit_code_holds_where_no_error_can_be_said(monkeypatch, arguments):
    monkeypatch.chdir(ROOT)
    with replaced(monkeypatch, "stderr", full):
        assert call(monkeypatch, *arguments) == 2


def test_what_an_encoding_lacks_is_spelled_out(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "é.yaml").touch()
    with io.TextIOWrapper(io.FileIO("said", "w"), "ascii") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "__stdout__", stream)
        assert call(monkeypatch, "params", "--config", "é.yaml") == 0
    assert (tmp_path / "said").read_bytes().startswith(b"# Every setting of \\xe9.yaml")
