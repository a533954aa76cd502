"""Runs of a benchmark: what is kept of them, and what an error ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from components.files import read_jsonl
from tests.benchmarks.runs import add_rows


def row(folder: Path, number: int) -> dict[str, object]:
    return {"number": number, "shared": (folder / "shared").exists()}


def skipped() -> dict[str, object]:
    return {"skipped": "no server here"}


def share(folder: Path) -> None:
    (folder / "shared").touch()


def broken(folder: Path) -> dict[str, object]:
    while not (folder / "begun").exists():
        time.sleep(0.01)
    raise ValueError("full")


def slow(folder: Path) -> dict[str, object]:
    (folder / "begun").touch()
    time.sleep(1)
    return {"number": 1}


def test_what_runs_share_is_made_before_them_and_a_skipped_run_is_said_and_not_kept(tmp_path, capsys):
    out = tmp_path / "results" / "rows.jsonl"
    add_rows(out, 2, [(row, tmp_path, 1), (skipped,)], [(share, tmp_path)], str)
    assert list(read_jsonl(out)) == [{"number": 1, "shared": True}]
    assert "no server here" in capsys.readouterr().out


def test_after_an_error_a_run_that_had_begun_is_kept_and_the_error_raised(tmp_path):
    out = tmp_path / "rows.jsonl"
    with pytest.raises(ValueError, match="full"):
        add_rows(out, 2, [(broken, tmp_path), (slow, tmp_path)])
    assert list(read_jsonl(out)) == [{"number": 1}]
