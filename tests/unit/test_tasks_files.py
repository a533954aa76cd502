"""Generated problems as files, for what reads files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from components.config import load
from components.data.sources import jsonl
from components.files import read_jsonl
from components.tasks import TASKS
from components.tasks.__main__ import main
from tests.code_graph import ROOT


def write(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["tasks", *map(str, arguments)])
    return main()


@pytest.mark.parametrize("task", TASKS)
def test_two_parts_of_the_same_problems_have_none_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert write(monkeypatch, task, "--out", first, "--rows", 40, "--total", 64) == 0
    assert write(monkeypatch, task, "--out", second, "--skip", 40, "--rows", 24, "--total", 64) == 0
    questions = [{row["question"] for row in read_jsonl(path)} for path in (first, second)]
    assert [len(part) for part in questions] == [40, 24]
    assert not questions[0] & questions[1]


def test_the_nightly_configuration_reads_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(monkeypatch, "arithmetic", "--out", tmp_path / "rows.jsonl", "--rows", 30, "--total", 64)
    settings = load(ROOT / "configs/nightly.yaml", [f"data.source.path={tmp_path}/rows.jsonl"])
    found = list(jsonl(settings.data.source, 0))  # type: ignore[arg-type]
    assert not [one.fault for one in found if one.fault]
    assert all(one.prompt.solution.endswith(f"#{one.prompt.answer}") and one.prompt.answer for one in found)
    assert len({one.prompt.family for one in found}) > 1


def test_more_problems_than_there_are_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert write(monkeypatch, "arithmetic", "--out", tmp_path / "x", "--rows", 30, "--skip", 40, "--total", 64) == 2
    assert "only 24 problems are left after 40" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
