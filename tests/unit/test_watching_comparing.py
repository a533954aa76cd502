"""`evenkeel compare`: which runs it finds, what it reads of them, and what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import report_fixture as fixture
from test_watching_runs import LIVE, begins, progress, ran
from typer.testing import CliRunner

from components.errors import InputError
from components.files import append_line, read_jsonl, write_jsonl
from components.layout import Layout
from flows.cli import app
from flows.watching.comparing import entries


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs that ended, that were stopped by a rule, and that train."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.setattr("flows.cli.watching.project_root", lambda _: tmp_path)
    fixture.healthy(Layout(ran(tmp_path, "demo-good").root).root)
    fixture.stopped(ran(tmp_path, "demo-stop", state="refused", candidate=None).root)
    live = ran(tmp_path, "demo-live", **LIVE)
    steps = list(read_jsonl(fixture.healthy(tmp_path / "other").records))[:5]
    write_jsonl(live.layout.state / "train/records.jsonl", steps)
    with (live.layout.state / "train/records.jsonl").open("a") as file:
        file.write('{"step": 5, "sig')
    progress(live, begins("data"), {"stage": "data", "state": "done", "seconds": 2.5}, begins("train"))
    append_line(live.layout.state / "spent.jsonl", {"stage": "data", "seconds": 36.0, "gpus": 1, "whole": True})
    return tmp_path


def call(*arguments: str) -> Any:
    result = CliRunner().invoke(app, ["compare", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_page_is_written_and_a_short_table_printed(project: Path) -> None:
    said = call("demo-g", "demo-stop", "demo-live")
    for expected in ("A demo-good", "88.4", "+55.3", "B demo-stop", "refused", "running", "page  compare.html"):
        assert expected in said
    page = (project / "compare.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "demo-live" in page


def test_a_run_goes_by_its_id_by_the_beginning_of_that_or_by_its_folder(project: Path) -> None:
    named = entries(project, ["demo-g", "runs/demo-stop", str(project / "runs/demo-live")])
    assert [one.name for one in named] == ["demo-good", "demo-stop", "demo-live"]


def test_a_run_that_trains_is_read_as_far_as_it_is(project: Path) -> None:
    _, live = entries(project, ["demo-good", "demo-live"])
    assert (live.state, live.steps) == ("running", 5), "half a line of the sixth step is none"
    assert (live.stages["data"].seconds, live.stages["train"].state) == (2.5, "running")
    assert live.hours == pytest.approx(0.01) == live.gpu_hours


def test_json_is_the_data_and_writes_a_page_only_where_one_is_named(project: Path) -> None:
    found = json.loads(call("demo-good", "demo-live", "--json"))
    assert list(found) == ["costs", "curves", "evaluation", "runs", "settings"]
    assert found["runs"]["A"]["run"] == "demo-good"
    assert found["evaluation"]["suites"]["test"]["A"]["share"] == 0.884
    assert found["evaluation"]["suites"]["test"]["B"] is None
    assert not (project / "compare.html").exists()
    call("demo-good", "demo-live", "--json", "--out", "there.html")
    assert (project / "there.html").exists()


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["demo-good", "nope"], "no run 'nope'"),
        (["demo-good"], "1 runs cannot be put side by side"),
        (["demo-good", "demo-go"], "a run is named twice"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_what_to_do(project: Path, names: list[str], what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        entries(project, names)
    assert caught.value.how
