"""The picture of a run, drawn from its progress file alone."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from components.config import Settings
from components.files import write_jsonl
from components.progress import PROGRESS_VARIABLE, progress
from components.stages import STAGES, wanted
from components.working import working
from flows.display import console as module
from flows.display.console import Board, Display, Tail, draw
from flows.run.workspace import Workspace

RUNNING = {"stage": "train", "state": "running", "seconds": 0.0}
THREE = {"stage": "train", "done": 3, "total": 9, "note": "acc 0.41"}


def add(path: Path, *events: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def after(*events: dict[str, Any]) -> Board:
    board = Board.of(STAGES)
    for event in events:
        board.apply(event)
    return board


def text_of(board: Board) -> str:
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(draw(board))
    return console.export_text()


def test_a_new_board_waits_for_every_stage() -> None:
    board = after()
    assert [view.state for view in board.stages.values()] == ["waiting"] * len(STAGES)
    assert board.running is None


def test_the_running_stage_shows_how_far_it_is_and_its_last_note() -> None:
    shown = text_of(after(RUNNING, THREE, {"stage": "train", "done": 4, "total": 9, "note": ""}))
    assert "4/9" in shown
    assert "acc 0.41" in shown


def test_below_the_note_stands_what_the_running_stage_is_doing() -> None:
    work = "sampling 14,300 of at most 51,200 tokens, 1,240/s, 0:31 left"
    lines = [line.strip() for line in text_of(after(RUNNING, {**THREE, "work": work})).splitlines()]
    assert lines.index(work) == lines.index("acc 0.41") + 1


def test_what_is_said_while_a_stage_is_silent_leaves_alone_how_far_it_is_and_its_next_line_ends_that() -> None:
    silent = (RUNNING, THREE, {"stage": "train", "work": "DVC saves, 0:03"})
    view = after(*silent).stages["train"]
    assert (view.done, view.total, view.note, view.work) == (3, 9, "acc 0.41", "DVC saves, 0:03")
    assert after(*silent, THREE).stages["train"].work == ""


def test_between_stages_the_board_says_what_the_flow_is_doing() -> None:
    with working("copying the checkpoint to the registry"):
        assert "copying the checkpoint to the registry, 0:00" in text_of(Board.of(STAGES))


def test_a_remark_on_a_stage_leaves_alone_how_far_it_is() -> None:
    remark = "demo-1: running: 1 of 2 pods run\nno node takes the pod\n  fix:   add nodes"
    shown = text_of(after(RUNNING, THREE, {"stage": "train", "remark": remark}))
    assert "3/9" in shown and "acc 0.41" not in shown
    assert "1 of 2 pods run; no node takes the pod" in shown and "add nodes" not in shown


def test_a_stage_that_ended_keeps_its_state_and_time() -> None:
    board = after(RUNNING, {"stage": "train", "state": "cached", "seconds": 67.4})
    assert board.running is None
    assert "1:07" in text_of(board)
    assert "cached" in text_of(board)


def test_a_stage_that_runs_again_starts_from_nothing() -> None:
    view = after(RUNNING, THREE, RUNNING).running
    assert view is not None
    assert (view.done, view.total, view.note) == (0, 0, "")


def test_the_tail_gives_each_complete_line_once(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    tail = Tail(path)
    assert tail.read() == []
    add(path, {"n": 1})
    with path.open("a", encoding="utf-8") as file:
        file.write('{"n":')
    assert tail.read() == [{"n": 1}]
    with path.open("a", encoding="utf-8") as file:
        file.write(" 2}\n")
    assert tail.read() == [{"n": 2}]
    assert tail.read() == []


def test_a_file_that_a_resumed_run_truncated_is_given_again(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    tail = Tail(path)
    write_jsonl(path, [{"step": 1}, {"step": 2}])
    assert (tail.read(), tail.replaced) == ([{"step": 1}, {"step": 2}], True)
    add(path, {"step": 3})
    assert (tail.read(), tail.replaced) == ([{"step": 3}], False)
    write_jsonl(path, [{"step": 1}])
    assert (tail.read(), tail.replaced) == ([{"step": 1}], True)


def test_half_a_line_of_a_killed_stage_does_not_end_the_display(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_text('{"stage": "tr{"stage": "train"}\n', encoding="utf-8")
    add(path, {"n": 1})
    assert Tail(path).read() == [{"n": 1}]


def test_a_stage_and_the_display_understand_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(path))
    with progress("train", 5) as bar:
        bar.advance(2, "acc 0.5")
    view = after(RUNNING, *Tail(path).read()).stages["train"]
    assert (view.done, view.total, view.note) == (2, 5, "acc 0.5")


def show(tmp_path: Path, *events: dict[str, Any], terminal: bool) -> str:
    path = tmp_path / "progress.jsonl"
    output = io.StringIO()
    console = Console(file=output, width=100, force_terminal=terminal)
    with Display(cast(Workspace, SimpleNamespace(progress=path)), console, wanted(Settings())):
        add(path, *events)
    return output.getvalue()


def test_without_a_terminal_each_finished_stage_is_one_plain_line(tmp_path: Path) -> None:
    shown = show(
        tmp_path,
        {"stage": "data", "state": "running", "seconds": 0.0},
        {"stage": "data", "state": "done", "seconds": 4.2},
        {"stage": "sft", "state": "failed", "seconds": 61.0},
        terminal=False,
    )
    assert [line.split() for line in shown.splitlines()] == [["data", "done", "0:04"], ["sft", "failed", "1:01"]]


def test_without_a_terminal_a_long_stage_says_now_and_then_how_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUIET", 0.0)
    shown = show(tmp_path, RUNNING, {**THREE, "note": "entropy [0.61]"}, terminal=False)
    assert "train      3/9  0:00  entropy [0.61]" in shown


def test_on_a_terminal_the_whole_board_is_drawn(tmp_path: Path) -> None:
    shown = show(tmp_path, RUNNING, THREE, terminal=True)
    assert all(stage in shown for stage in wanted(Settings()))
    assert "dpo" not in shown
    assert "acc 0.41" in shown


@pytest.mark.parametrize("terminal", [True, False])
def test_a_remark_on_a_stage_is_shown_whole_and_stays(tmp_path: Path, terminal: bool) -> None:
    remark = "demo-1: pending: 0 of 1 pods run\nno node takes the pod: few [cpu]\n  fix:   " + "add nodes " * 20
    shown = show(tmp_path, RUNNING, {"stage": "train", "remark": remark}, terminal=terminal)
    assert all(line.rstrip() in shown for line in remark.splitlines())
