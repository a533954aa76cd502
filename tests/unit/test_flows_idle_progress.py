"""While DVC checks or saves, and a stage says nothing, the flow says what is done."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from components.files import append_line, read_jsonl
from components.layout import Layout
from components.status import StageStatus, write_status
from flows.run import stages
from flows.run.stages import report_idle
from flows.run.workspace import Workspace

INTERVAL = 0.1


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(stages, "INTERVAL", INTERVAL)
    return cast(Workspace, SimpleNamespace(progress=tmp_path / "progress.jsonl", layout=Layout(tmp_path)))


def said(workspace: Workspace, count: int = 1) -> list[dict[str, Any]]:
    """The lines in the file, once there are so many."""
    for _ in range(600):
        rows = list(read_jsonl(workspace.progress)) if workspace.progress.exists() else []
        if len(rows) >= count:
            return rows
        time.sleep(0.05)
    raise AssertionError(f"{len(rows)} lines in 30 s")


def test_before_the_stage_has_said_anything_dvc_is_at_work(workspace: Workspace) -> None:
    with report_idle(workspace, "train"):
        rows = said(workspace, 2)
    assert {row["stage"] for row in rows} == {"train"}
    assert all(row["work"].startswith("DVC checks what has changed, 0:") for row in rows)


def test_a_stage_that_has_spoken_and_is_silent_is_at_work(workspace: Workspace) -> None:
    with report_idle(workspace, "train"):
        said(workspace)
        append_line(workspace.progress, {"stage": "train", "done": 1, "total": 2, "note": ""})
        count = len(said(workspace))
        rows = said(workspace, count + 2)
    assert rows[-1]["work"].startswith("working, ")


def test_after_the_stage_has_ended_dvc_saves(workspace: Workspace) -> None:
    write_status(workspace.layout, "train", StageStatus(0))
    with report_idle(workspace, "train"):
        (row, *_) = said(workspace)
    assert row["work"].startswith("DVC saves the outputs to its cache, ")
