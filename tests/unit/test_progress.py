"""Progress goes to a file when a flow watches, to a bar when a person does."""

from __future__ import annotations

import json
import re

from components.progress import PROGRESS_VARIABLE, progress, remarked
from components.stages import STAGES
from tests.code_graph import ROOT


def test_inside_a_flow_progress_is_one_json_line_an_event_and_one_plain_line_of_the_log(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / "events"))
    with progress("train", 10) as bar:
        bar.advance(3, "acc 0.5 [green]")
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert events == [
        {"stage": "train", "done": 0, "total": 10, "note": ""},
        {"stage": "train", "done": 3, "total": 10, "note": "acc 0.5 [green]"},
    ]
    assert capsys.readouterr() == ("train 0/10\ntrain 3/10  acc 0.5 [green]\n", "")


def test_by_hand_progress_is_a_bar_on_standard_error_with_the_note_as_it_is(monkeypatch, capsys):
    monkeypatch.delenv(PROGRESS_VARIABLE, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    with progress("sft", 10) as bar:
        bar.advance(10, "loss [0.1]")
    out, err = capsys.readouterr()
    assert out == ""
    assert all(part in err for part in ("sft", "10/10", "loss [0.1]"))


def test_a_terminal_of_80_columns_has_room_for_the_bar_and_a_note_of_as_many_characters(monkeypatch, capsys):
    monkeypatch.delenv(PROGRESS_VARIABLE, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    note = "acc 0.84  entropy 0.19  zero-var 49%  dev 0.50  warned: second_disagrees_more"
    with progress("train", 100) as bar:
        bar.advance(61, note)
    lines = [line.rstrip() for line in capsys.readouterr().err.splitlines()]
    assert note in lines
    assert any(line.startswith("train") and "61/100" in line for line in lines)


def test_what_reports_progress_is_a_stage_that_a_board_has_a_line_for() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "components/stages").glob("*.py"))
    named = set(re.findall(r'\bprogress\("(\w+)"', code))
    assert {"train", "evaluate"} <= named <= set(STAGES)


def test_a_remark_is_for_whoever_waits_and_for_the_log(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / "events"))
    remarked("train", "demo-1: pending\n  mend:  add nodes")
    assert json.loads((tmp_path / "events").read_text()) == {
        "stage": "train",
        "remark": "demo-1: pending\n  mend:  add nodes",
    }
    monkeypatch.delenv(PROGRESS_VARIABLE)
    remarked("train", "demo-1: running")
    assert capsys.readouterr() == ("", "demo-1: pending\n  mend:  add nodes\ndemo-1: running\n")
