"""`evenkeel status`, `logs` and `cancel`, from workspaces alone."""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from rich.console import Console

from components.config import dump, load
from components.config.promotion import PromotionPolicy, QuorumSettings
from components.errors import InputError
from components.files import append_line, write_json, write_text
from components.processes import free_port
from flows.display.summary import show_candidate
from flows.governance import commands
from flows.run.workspace import RunRequest
from flows.watching import cancel as cancelling
from flows.watching import logs, runs
from flows.watching.cancel import cancel
from flows.watching.execution import Execution, write
from flows.watching.runs import RunView, all_runs, find_run
from flows.watching.status import advice, show_run, show_runs, to_dict

DEMO = load(Path("configs/demo.yaml"))
SLEEPER = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
Child = subprocess.Popen[bytes]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "POLL", 0.02)
    for name, seconds in (("POLL", 0.02), ("WORKER_START", 0.3), ("WORKER_GRACE", 0.3), ("KILL_GRACE", 2.0)):
        monkeypatch.setattr(cancelling, name, seconds)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path


def ran(project: Path, run_id: str, **changes: Any) -> RunView:
    """A run whose execution ended with a candidate, but for what ``changes`` say."""
    root = project / "runs" / run_id
    write_text(root / "params.yaml", dump(DEMO))
    done = Execution(
        run_id=run_id,
        flow="post-training",
        pid=os.getpid(),
        created=psutil.Process().create_time(),
        host=platform.node(),
        began="2026-01-01T10:00:00+00:00",
        commit="c0ffee",
        state="candidate",
        ended="2026-01-01T10:02:05+00:00",
        candidate="d1e5" * 16,
    )
    write(root, replace(done, **changes))
    return RunView(project, run_id)


LIVE: dict[str, Any] = {"state": "running", "ended": None, "candidate": None}
DEAD: dict[str, Any] = {**LIVE, "created": 1.0, "deployed": "f10"}


def progress(run: RunView, *events: dict[str, Any]) -> None:
    for event in events:
        append_line(run.root / ".state/progress.jsonl", event)


def begins(stage: str) -> dict[str, Any]:
    return {"stage": stage, "state": "running", "seconds": 0.0}


def printed(show: Any, *arguments: Any, width: int = 120) -> str:
    console = Console(width=width, file=io.StringIO())
    show(console, *arguments)
    return cast(io.StringIO, console.file).getvalue()


@pytest.mark.parametrize(
    ("changes", "state", "next_step"),
    [
        (LIVE, "running", "evenkeel logs -f demo-1; stop it: evenkeel cancel demo-1"),
        ({}, "candidate", "read the report"),
        ({"state": "refused", "candidate": None, "reason": "triage refused"}, "refused", "read the report"),
        ({"state": "failed", "candidate": None}, "failed", "see why: evenkeel logs demo-1 sft"),
        ({"state": "stopped", "candidate": None}, "stopped", "evenkeel run --resume demo-1"),
        ({**LIVE, "created": 1.0}, "dead", "evenkeel run --resume demo-1"),
        ({"state": "done", "candidate": None}, "done", "it is over"),
    ],
)
def test_every_state_has_a_word_and_a_next_step(
    project: Path, changes: dict[str, Any], state: str, next_step: str
) -> None:
    run = ran(project, "demo-1", **changes)
    progress(run, begins("data"), {"stage": "data", "state": "done", "seconds": 2.0}, begins("sft"))
    assert run.state == state
    assert next_step in advice(run)
    assert state in printed(show_runs, [run])


def test_the_line_that_approves_a_candidate_can_be_run_as_it_is(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ran(project, "demo-1", request=RunRequest("configs/mine.yaml"))
    assert "is not known" in advice(run), "there is neither policy nor gate"
    write_json(run.layout.gate, {"result": "inconclusive", "checks": []})
    signed = PromotionPolicy.model_construct(promote=QuorumSettings(signed=True))
    monkeypatch.setattr(commands, "load_policy", lambda _: SimpleNamespace(settings=signed))
    line = "evenkeel approve d1e5d1e5d1e5 --by YOUR-NAME --reason WHY --key YOUR-KEY --config configs/mine.yaml"
    assert advice(run).endswith(line)
    monkeypatch.chdir(project)
    place = SimpleNamespace(project=project, run_id="demo-1", layout=run.layout)
    assert line in " ".join(printed(show_candidate, place, "d1e5" * 16, None, width=300).split())


@pytest.mark.parametrize(
    ("outcome", "state"), [("promoted", "approved"), ("rolled back", "approved"), ("rejected", "rejected")]
)
def test_a_candidate_that_is_decided_has_a_word_for_that(
    project: Path, monkeypatch: pytest.MonkeyPatch, outcome: str, state: str
) -> None:
    monkeypatch.setattr(runs, "decision_on", lambda store, digest: SimpleNamespace(outcome=outcome))
    assert ran(project, "demo-1").state == state


def test_runs_are_listed_the_newest_first_with_what_they_say(project: Path) -> None:
    ran(project, "demo-old")
    ran(project, "demo-new", began="2026-01-02T10:00:00+00:00", state="failed", candidate=None, reason="disk\nfull")
    (project / "runs/.demo-half.abcdefgh").mkdir()
    write_text(project / "runs/.demo-half.abcdefgh/params.yaml", "")
    runs = all_runs(project)
    assert [run.run_id for run in runs] == ["demo-new", "demo-old"]
    said = printed(show_runs, runs)
    assert "disk" in said
    assert "2:05" in said
    assert "d1e5d1e5d1e5" in said


def test_of_a_run_that_works_the_live_line_and_how_far_it_is_are_shown(project: Path) -> None:
    run = ran(project, "demo-1", **LIVE)
    event = {"stage": "train", "done": 7, "total": 40, "note": "acc 0.5  healthy"}
    progress(run, begins("train"), event)
    said = printed(show_runs, [run])
    assert "train 7/40" in said
    assert "acc 0.5  healthy" in said


def test_one_run_is_shown_with_stages_settings_processes_and_reason(project: Path) -> None:
    run = ran(project, "demo-1", **LIVE, flow_run="f10", api="http://127.0.0.1:4200/api", reason="")
    progress(run, begins("data"), {"stage": "data", "state": "cached", "seconds": 1.0}, begins("train"))
    write_text(run.layout.logs / "data.log", "data\n")
    said = printed(show_run, run)
    assert "http://127.0.0.1:4200/runs/flow-run/f10" in said
    assert 'schedule.kind = "forecast"' in said
    assert "logs/data.log" in said
    assert str(os.getpid()) in said
    row = to_dict(run)
    assert row["processes"] == [os.getpid()]
    assert row["stages"][0] == {"stage": "data", "state": "cached", "seconds": 1.0, "done": 0, "total": 0}
    assert json.loads(json.dumps(row)) == row


def test_a_stage_that_a_dead_run_was_in_is_not_said_to_be_running(project: Path) -> None:
    run = ran(project, "demo-1", **{**LIVE, "created": 1.0})
    progress(run, begins("train"))
    assert "interrupted" in printed(show_run, run)


def test_a_run_is_found_by_as_much_of_its_name_as_is_needed(project: Path) -> None:
    for name in ("demo-1a", "demo-1b", "demo-1"):
        ran(project, name)
    assert find_run(project, "demo-1a").run_id == "demo-1a"
    assert find_run(project, "demo-1").run_id == "demo-1", "an exact name wins"
    for name, what in (("demo", "3 runs begin with 'demo'"), ("", "no run ''"), ("other", "no run 'other'")):
        with pytest.raises(InputError, match=what) as caught:
            find_run(project, name)
    assert "demo-1a" in str(caught.value)


def test_a_workspace_without_or_with_a_damaged_execution_record_is_shown_all_the_same(project: Path) -> None:
    run = ran(project, "demo-1")
    write_text(run.root / ".state/execution.json", "{")
    write_text(run.root / "params.yaml", "no: settings")
    assert RunView(project, "demo-1").state == "unknown"
    assert "unknown" in printed(show_run, RunView(project, "demo-1"))


# logs


def log(run: RunView, stage: str, text: str) -> None:
    path = run.layout.logs / f"{stage}.log"
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def shown(run: RunView, stage: str | None = None, lines: int | None = None) -> str:
    parts: list[bytes] = []
    logs.show(run, stage, lines, parts.append)
    return b"".join(parts).decode()


def test_the_log_of_the_last_stage_is_shown_or_the_one_that_is_named(project: Path) -> None:
    run = ran(project, "demo-1")
    with pytest.raises(InputError, match="printed nothing yet"):
        shown(run)
    progress(run, begins("data"), begins("sft"))
    log(run, "data", "one\ntwo\n")
    log(run, "sft", "three\nfour\nfi")
    assert shown(run) == "three\nfour\nfi"
    assert shown(run, "data", lines=1) == "two\n"
    assert [shown(run, "sft", lines=count) for count in (0, 1, 2, 9)] == ["", "fi", "four\nfi", "three\nfour\nfi"]
    with pytest.raises(InputError, match="no log 'nope'") as caught:
        shown(run, "nope")
    assert "there are: data, sft" in str(caught.value)


def following(run: RunView, stage: str | None = None) -> tuple[threading.Thread, list[str]]:
    """A thread that follows; what it wrote, with a word at every new log."""
    parts: list[str] = []
    switched = lambda name: parts.append(f"<{name}>")  # noqa: E731
    arguments = (run, stage, None, lambda text: parts.append(text.decode()), switched)
    thread = threading.Thread(target=logs.follow, args=arguments, daemon=True)
    thread.start()
    return thread, parts


def until(parts: list[str], wanted: str) -> None:
    give_up = time.monotonic() + 20
    while wanted not in "".join(parts):
        assert time.monotonic() < give_up, "".join(parts)
        time.sleep(0.02)


def test_following_goes_from_stage_to_stage_until_the_run_ends(project: Path) -> None:
    run = ran(project, "demo-1", **LIVE)
    progress(run, begins("data"))
    log(run, "data", "one\n")
    log(run, "sft", "of an earlier execution\n")
    thread, parts = following(run)
    until(parts, "one")
    log(run, "data", "two\n")
    progress(run, begins("sft"))
    log(run, "sft", "three\n")
    until(parts, "three")
    log(run, "sft", "the last line\n")
    ran(project, "demo-1")
    thread.join(10)
    assert not thread.is_alive()
    assert "".join(parts) == "<data>one\ntwo\n<sft>three\nthe last line\n"


@pytest.mark.parametrize("stage", [None, "sft"])
def test_following_waits_for_a_log_that_is_not_begun(project: Path, stage: str | None) -> None:
    run = ran(project, "demo-1", **LIVE)
    thread, parts = following(run, stage)
    time.sleep(0.1)
    assert thread.is_alive()
    progress(run, begins("sft"))
    log(run, "sft", "one\n")
    until(parts, "one")
    ran(project, "demo-1")
    thread.join(10)
    assert "".join(parts) == "<sft>one\n"


def test_a_run_that_has_ended_and_printed_nothing_is_not_followed(project: Path) -> None:
    with pytest.raises(InputError, match="printed nothing yet") as refused:
        logs.follow(ran(project, "demo-1"), None, None, print, print)
    assert "evenkeel run --resume demo-1" in str(refused.value)


def test_following_survives_a_log_that_is_cut_or_replaced(project: Path) -> None:
    run = ran(project, "demo-1", **LIVE)
    path = run.layout.logs / "train.log"
    log(run, "train", "one, which is long\n")
    thread, parts = following(run, "train")
    until(parts, "long")
    os.truncate(path, 0)
    log(run, "train", "cut\n")
    until(parts, "cut")
    path.rename(path.with_suffix(".1"))
    log(run, "train", "another file, and longer than what was before\n")
    until(parts, "another")
    ran(project, "demo-1")
    thread.join(10)
    assert "".join(parts).startswith("<train>one, which is long\ncut\nanother")


# cancel


def process(code: str) -> Iterator[Child]:
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.wait()


@pytest.fixture
def sleeper() -> Iterator[Child]:
    yield from process(SLEEPER)


@pytest.fixture
def stubborn() -> Iterator[Child]:
    yield from process(STUBBORN)


def run_by(project: Path, child: Child, **changes: Any) -> RunView:
    created = psutil.Process(child.pid).create_time()
    return ran(project, "demo-1", **{**LIVE, "pid": child.pid, "created": created, **changes})


def cancelled(run: RunView, grace: float = 10) -> str:
    said: list[str] = []
    cancel(run, grace, said.append)
    return "\n".join(said)


def test_a_run_by_hand_is_asked_to_end(project: Path, sleeper: Child) -> None:
    said = cancelled(run_by(project, sleeper))
    assert sleeper.wait(5) == -15
    assert said == f"sent SIGTERM to process {sleeper.pid}\ncancelled; to continue: evenkeel run --resume demo-1"


def test_a_run_that_does_not_end_is_killed_and_that_is_said(project: Path, stubborn: Child) -> None:
    said = cancelled(run_by(project, stubborn), grace=0.3)
    assert stubborn.wait(5) == -9
    assert find_run(project, "demo-1").state == "stopped", "it could not say so itself"
    assert f"did not end within 0.3 s: killing process {stubborn.pid}" in said


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "does not run: it is candidate"),
        ({"state": "stopped", "candidate": None}, "to continue it: evenkeel run --resume demo-1"),
        ({**LIVE, "host": "elsewhere"}, "it runs on elsewhere"),
    ],
)
def test_what_does_not_run_here_is_not_cancelled(project: Path, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError) as caught:
        cancelled(ran(project, "demo-1", **changes))
    assert why in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_process_that_got_the_number_of_a_dead_run_is_not_touched(project: Path, sleeper: Child) -> None:
    with pytest.raises(InputError, match="it is dead"):
        cancelled(run_by(project, sleeper, created=1.0))
    assert sleeper.poll() is None


class FakePrefect(ThreadingHTTPServer):
    """Knows one flow run. ``on_cancelling`` is what a worker would do."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.state, self.asked, self.on_cancelling = "RUNNING", [], lambda: None
        self.accepts, self.code, self.others = True, 200, []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api"


class Answers(BaseHTTPRequestHandler):
    server: FakePrefect

    def do_GET(self) -> None:
        self._answer({"state_type": self.server.state})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/filter"):
            self._answer(self.server.others)
            return
        wanted = body["state"]["type"]
        self.server.asked.append((self.path, wanted, body["force"]))
        if self.server.accepts:
            self.server.state = wanted
            if wanted == "CANCELLING":
                self.server.on_cancelling()
        self._answer({"status": "ACCEPT" if self.server.accepts else "ABORT"})

    def _answer(self, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(self.server.code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[FakePrefect]:
    server = FakePrefect()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def prefect() -> Iterator[FakePrefect]:
    with serving() as server:
        yield server


def of_worker(project: Path, child: Child, server: FakePrefect, **changes: Any) -> RunView:
    return run_by(project, child, **{"deployed": "f10", "flow_run": "f10", "api": server.url, **changes})


def test_a_run_of_a_worker_is_cancelled_through_its_server(project: Path, sleeper: Child, prefect: FakePrefect) -> None:
    def worker() -> None:
        sleeper.terminate()
        prefect.state = "CANCELLED"

    prefect.on_cancelling = worker
    said = cancelled(of_worker(project, sleeper, prefect))
    assert prefect.asked == [("/api/flow_runs/f10/set_state", "CANCELLING", False)]
    assert "cancellation of flow run f10" in said


@pytest.mark.parametrize(
    ("server", "changes", "why"),
    [
        ({}, {}, "no worker has ended it"),
        ({"accepts": False}, {}, "did not accept it (abort)"),
        ({}, {"api": f"http://127.0.0.1:{free_port()}/api"}, "does not answer (ConnectError)"),
        ({"code": 401}, {}, "refuses (401 Unauthorized); set PREFECT_API_AUTH_STRING to user:password"),
    ],
)
def test_where_neither_worker_nor_server_ends_a_run_its_process_gets_a_signal(
    project: Path,
    sleeper: Child,
    prefect: FakePrefect,
    server: dict[str, Any],
    changes: dict[str, Any],
    why: str,
) -> None:
    vars(prefect).update(server)
    said = cancelled(of_worker(project, sleeper, prefect, **changes))
    assert why in said
    assert ("does not answer" in said) == ("does not answer" in why)
    assert sleeper.wait(5) == -15
    if not (server or changes):
        assert prefect.asked[-1] == ("/api/flow_runs/f10/set_state", "CANCELLED", True)


@pytest.mark.parametrize("state", ["SCHEDULED", "PENDING", "RUNNING"])
def test_a_dead_run_that_a_worker_would_go_on_with_is_cancelled(
    project: Path, prefect: FakePrefect, state: str
) -> None:
    prefect.state = state
    run = ran(project, "demo-1", **DEAD, flow_run="f10", api=prefect.url)
    assert "it was to be continued: cancelled flow run f10" in cancelled(run)
    assert prefect.state == "CANCELLED"
    assert find_run(project, "demo-1").state == "stopped"


def test_a_dead_run_whose_worker_started_again_is_stopped_there(
    project: Path, prefect: FakePrefect, sleeper: Child
) -> None:
    def worker() -> None:
        of_worker(project, sleeper, prefect)

    prefect.state, prefect.on_cancelling = "PENDING", worker
    cancelled(ran(project, "demo-1", **DEAD, flow_run="f10", api=prefect.url))
    assert sleeper.wait(5) == -15
    assert prefect.state == "CANCELLED"


def test_a_dead_run_is_not_said_to_be_over_while_its_server_is_away_or_when_its_flow_run_ended(
    project: Path, prefect: FakePrefect
) -> None:
    with pytest.raises(InputError, match="goes on with it at its next start"):
        cancelled(ran(project, "demo-1", **DEAD, api=f"http://127.0.0.1:{free_port()}/api"))
    prefect.state = "FAILED"
    with pytest.raises(InputError, match="it is dead"):
        cancelled(ran(project, "demo-1", **DEAD, api=prefect.url))


def test_other_flow_runs_that_wait_for_the_run_are_cancelled_or_named(
    project: Path, sleeper: Child, prefect: FakePrefect
) -> None:
    prefect.others = [
        {"id": "f10", "name": "itself", "deployment_id": "d", "state_type": "RUNNING"},
        {"id": "f11", "name": "waiting", "deployment_id": "d", "state_type": "RUNNING"},
        {"id": "f12", "name": "planned", "deployment_id": "d", "state_type": "SCHEDULED"},
        {"id": "f13", "name": "by-hand", "deployment_id": None, "state_type": "RUNNING"},
    ]
    said = cancelled(of_worker(project, sleeper, prefect))
    assert prefect.asked[:2] == [
        ("/api/flow_runs/f11/set_state", "CANCELLING", False),
        ("/api/flow_runs/f12/set_state", "CANCELLED", True),
    ]
    assert "f13" not in str(prefect.asked)
    assert "flow run by-hand was started by hand" in said
    assert sleeper.wait(5) == -15


def test_the_last_lines_of_a_long_log_are_found_at_once(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"x" * 100 + b"\n" + (b"y" * 120 + b"\n") * 200_000)
    began = time.monotonic()
    assert logs.tail(log, 20) == log.stat().st_size - 20 * 121
    assert time.monotonic() - began < 1
