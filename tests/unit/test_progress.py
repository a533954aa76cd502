"""Progress goes to a file when a flow watches, to a bar when a person does. No silence lasts."""

from __future__ import annotations

import json
import re
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from components import progress as module
from components import working as works
from components.progress import INTERVAL, PROGRESS_VARIABLE, Report, Reporter, progress, relayed, remarked, reporting
from components.stages import STAGES
from components.working import clock, described, present, working
from tests.code_graph import ROOT


class Clock:
    """Time that passes only where a test lets it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(works.time, "monotonic", found)
    return found


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "events"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(path))
    return path


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Where reports go


def test_inside_a_flow_progress_is_one_json_line_an_event_and_one_plain_line_of_the_log(events, capsys):
    with progress("train", 10) as bar:
        bar.advance(3, "acc 0.5 [green]")
    assert read(events) == [
        {"stage": "train", "done": 0, "total": 10, "note": ""},
        {"stage": "train", "done": 3, "total": 10, "note": "acc 0.5 [green]"},
    ]
    assert capsys.readouterr() == ("train 0/10\ntrain 3/10  acc 0.5 [green]\n", "")


def test_by_hand_without_a_terminal_progress_is_plain_lines_on_standard_error(monkeypatch, capsys):
    monkeypatch.delenv(PROGRESS_VARIABLE, raising=False)
    with progress("sft", 10) as bar, working("updating"):
        bar.advance(10, "loss [0.1]")
    assert capsys.readouterr() == ("", "sft 0/10\nsft 10/10  loss [0.1] | updating, 0:00\n")


def test_a_terminal_of_80_columns_has_room_for_the_bar_a_note_of_as_many_characters_and_the_work(monkeypatch, capsys):
    monkeypatch.delenv(PROGRESS_VARIABLE, raising=False)
    monkeypatch.setattr(module, "_on_a_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    note = "acc 0.84  entropy 0.19  zero-var 49%  dev 0.50  warned: second_disagrees_more"
    with working("updating", 12, "rows"), progress("train", 100) as bar:
        bar.advance(61, note)
    lines = [line.rstrip() for line in capsys.readouterr().err.splitlines()]
    assert note in lines and "updating 0 of 12 rows, 0:00" in lines
    assert any(line.startswith("train") and "61/100" in line for line in lines)


def test_what_reports_progress_is_a_stage_that_a_board_has_a_line_for() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "components/stages").glob("*.py"))
    named = set(re.findall(r'\bprogress\("(\w+)"', code))
    assert {"train", "evaluate"} <= named <= set(STAGES)


def test_a_remark_is_for_whoever_waits_and_for_the_log(events, monkeypatch, capsys):
    remarked("train", "demo-1: pending\n  fix:   add nodes")
    assert read(events) == [{"stage": "train", "remark": "demo-1: pending\n  fix:   add nodes"}]
    monkeypatch.delenv(PROGRESS_VARIABLE)
    remarked("train", "demo-1: running")
    assert capsys.readouterr() == ("", "demo-1: pending\n  fix:   add nodes\ndemo-1: running\n")


@pytest.mark.parametrize(
    "report",
    [
        Report("train", 3, 9),
        Report("train", 3, 9, "acc 0.4  dev 0.5"),
        Report("train", 3, 9, "", "sampling 2 of 9 tokens, 0:01"),
        Report("train", 3, 9, "a | b", "loading the policy, 0:07"),
        Report("train", work="loading the policy, 0:07"),
    ],
)
def test_the_line_of_a_report_says_all_that_is_in_it(report: Report) -> None:
    assert Report.parse(report.line) == report


@pytest.mark.parametrize("line", ["train", "train  note", "WARNING: few | many", "3/9"])
def test_other_lines_are_no_reports(line: str) -> None:
    assert Report.parse(line) is None


def test_the_line_of_a_stage_elsewhere_is_reported_here_with_its_work(events, capsys):
    with reporting("train"), working("waiting for the job"):
        assert relayed("train 3/9  acc 0.4 | updating 1 of 8 rows, 0:01", "train")
        assert not relayed("triage 3/9", "train")
    expected = {"stage": "train", "done": 3, "total": 9, "note": "acc 0.4", "work": "updating 1 of 8 rows, 0:01"}
    assert read(events) == [expected]
    assert capsys.readouterr().out == "train 3/9  acc 0.4 | updating 1 of 8 rows, 0:01\n"


# The present work


def test_work_says_how_much_is_done_at_which_rate_and_how_long_the_rest_takes(time: Clock) -> None:
    with working("sampling", 51_200, "tokens", at_most=True) as work:
        assert described() == "sampling 0 of at most 51,200 tokens, 0:00"
        time.now = 10
        work.add(12_800)
        assert described() == "sampling 12,800 of at most 51,200 tokens, 1,280/s, 0:30 left"
        work.spare(25_600)
        assert described() == "sampling 12,800 of at most 25,600 tokens, 1,280/s, 0:10 left"
    assert described() == ""


def test_there_is_no_rate_before_there_is_something_to_take_the_mean_of(time: Clock) -> None:
    with working("updating", 8, "rows") as work:
        time.now = 9
        assert described() == "updating 0 of 8 rows, 0:09"
        work.add(2)
        assert described() == "updating 2 of 8 rows, 0.22/s, 0:27 left"


def test_the_start_of_what_does_the_work_does_not_count_for_the_rate(time: Clock) -> None:
    with working("verifying", 500, "answers") as work:
        time.now = 50
        work.add(100)
        described()
        time.now = 60
        work.add(200)
        assert described() == "verifying 300 of 500 answers, 20/s, 0:10 left"


def test_work_of_unknown_size_has_no_time_left(time: Clock) -> None:
    with working("reading", unit="rows") as work, working("loading the policy"):
        time.now = 7
        work.add(700)
        assert described() == "loading the policy, 0:07"
        assert works.describe(work, time()) == "reading 700 rows, 100/s"


def test_of_nested_work_the_innermost_is_shown_and_of_threads_that_work_at_once_each() -> None:
    begun, over = threading.Event(), threading.Event()

    def sample() -> None:
        with working("sampling"):
            begun.set()
            over.wait(30)

    thread = threading.Thread(target=sample)
    with working("outer"), working("updating"):
        thread.start()
        begun.wait(30)
        assert [work.what for work in present()] == ["updating", "sampling"]
        over.set()
        thread.join()
        assert [work.what for work in present()] == ["updating"]


def test_work_that_fails_is_over() -> None:
    with pytest.raises(ValueError, match="broken"), working("sampling"):
        raise ValueError("broken")
    assert present() == []


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (59.9, "0:59"), (3601, "60:01")])
def test_times_are_minutes_and_seconds(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


# No silence


def test_whatever_a_stage_does_no_silence_is_longer_than_the_interval(time: Clock) -> None:
    said: list[tuple[float, str]] = []
    reporter = Reporter("triage", lambda report: said.append((time.now, report.line)), time)
    advances = {4.0: lambda: reporter.begin(32), 4.1: lambda: reporter.advance(1), 30.0: lambda: reporter.advance(2)}
    for tenth in range(1, 600):
        time.now = tenth / 10
        advances.get(time.now, reporter.tick)()
        reporter.tick()
    times = [0.0, *(moment for moment, _ in said), 60.0]
    assert max(after - before for before, after in pairwise(times)) <= INTERVAL + 0.11
    assert len(said) < 60 / INTERVAL + 5, "and it does not chatter"


def test_while_nothing_is_reported_the_last_report_is_repeated_with_the_present_work(time: Clock) -> None:
    said: list[Report] = []
    reporter = Reporter("triage", said.append, time)
    reporter.begin(32)
    reporter.advance(12, "pass 0.3")
    time.now = INTERVAL + 1
    reporter.tick()
    assert said[-1] == Report("triage", 12, 32, "pass 0.3", "working, 0:03")


def test_a_report_from_elsewhere_is_waited_for_longer_than_one_of_this_process(time: Clock) -> None:
    said: list[Report] = []
    reporter = Reporter("train", said.append, time)
    reporter.relay(Report("train", 3, 9))
    time.now = INTERVAL + 0.5
    reporter.tick()
    assert len(said) == 1
    time.now = 4.5
    reporter.tick()
    assert len(said) == 2


def test_a_stage_inside_its_own_reporting_has_one_reporter_and_one_thread() -> None:
    with reporting("sft") as outer:
        running = threading.active_count()
        with progress("sft", 3) as inner:
            assert inner is outer and threading.active_count() == running
    assert "progress" not in {thread.name for thread in threading.enumerate()}
