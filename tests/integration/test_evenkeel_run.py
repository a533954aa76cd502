"""`evenkeel run` from end to end: Git, DVC, Prefect and the terminal are real, the stages do next to nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from components.files import read_json
from components.processes.living import lives
from flows.host.processes import OWNER_VARIABLE
from tests import fake_line
from tests.project import RUN_LINE, run_id

pytestmark = pytest.mark.integration
LONG = ("--set", "train.steps=400")
"""Eight seconds in stage train: time to interfere."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_line.build(tmp_path_factory.mktemp("line"))


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A Prefect server for the tests that need none of their own: it takes seconds to start."""
    from prefect.server.api.server import SubprocessASGIServer

    running = SubprocessASGIServer()
    running.start(timeout=120)
    yield running.api_url
    running.stop()


class Run(subprocess.Popen[str]):
    """`evenkeel run` in a session of its own, as in a terminal; its output is in a file."""

    def __init__(self, project: Path, *arguments: str, server: str | None = None) -> None:
        self.output = project / ".state" / f"output-{time.monotonic_ns()}.txt"
        self.output.parent.mkdir(exist_ok=True)
        with self.output.open("w", encoding="utf-8") as file:
            super().__init__(
                [sys.executable, "-c", "from flows.cli import main; main()", "run", *arguments],
                cwd=project,
                env=os.environ | ({"PREFECT_API_URL": server} if server else {}),
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def workspace(self, project: Path) -> Path:
        return project / "runs" / run_id(self.said())

    def wait_until_training(self, project: Path) -> Path:
        """Wait until the fake train stage has done some work; returns its mark in the workspace."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.poll() is None:
            if RUN_LINE.search(self.said()) and (mark := self.workspace(project) / ".state/train.done").exists():
                return mark
            time.sleep(0.1)
        raise AssertionError(self.said())


def run(project: Path, *arguments: str, server: str | None = None) -> tuple[int, str]:
    """Exit code and output of a whole run."""
    process = Run(project, *arguments, server=server)
    return process.wait(200), process.said()


def states(output: str) -> dict[str, str]:
    """Stage -> how it ended, from the plain lines of a terminal-less run."""
    ended = {"done", "cached", "failed", "refused"}
    lines = [line.split() for line in output.splitlines()]
    return {words[0]: words[1] for words in lines if len(words) == 3 and words[1] in ended}


def family(project: Path) -> Iterator[psutil.Process]:
    """Every process that a run of this project started and that is alive."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(OWNER_VARIABLE, "").endswith(f":{project}"):
                yield process
        except psutil.Error:
            continue


def artifacts(server: str, run_id: str) -> dict[str, dict[str, Any]]:
    """Key -> the latest artifact that the flow of this run left in the UI."""
    answer = httpx.post(f"{server}/artifacts/filter", json={"sort": "CREATED_DESC"}, timeout=30).raise_for_status()
    found = [row for row in answer.json() if row["description"].endswith(run_id)]
    return {row["key"]: row for row in reversed(found)}


@pytest.mark.slow
def test_a_run_ends_with_a_candidate_and_leaves_what_it_found_in_the_ui(project: Path, server: str) -> None:
    code, said = run(project, server=server)
    assert code == 0, said
    assert set(states(said).values()) == {"done"}
    for expected in (
        "pass@1",
        "70.0%",
        "+40.0 points",
        "1 warn",
        "report.html",
        "awaiting approval",
        "evenkeel approve",
    ):
        assert expected in said

    shown = artifacts(server, run_id(said))
    assert shown["run-health"]["data"].startswith("# Health of run demo")
    (row,) = json.loads(shown["run-ledger"]["data"])
    assert (row["Step"], row["Rule"], row["Changed"]) == ("3", "entropy_low", "back to step 1; learner.lr 0.2 → 0.1")
    assert f"file://{project}/runs/" in shown["run-report"]["data"]
    assert all(row["flow_run_id"] for row in shown.values())


@pytest.mark.slow
def test_only_what_changed_runs_again(project: Path, server: str) -> None:
    code, said = run(project, server=server)
    assert code == 0, said
    code, said = run(project, server=server)
    assert code == 0
    assert set(states(said).values()) == {"cached"}
    assert "awaiting approval" in said

    code, said = run(project, "--set", "learner.lr=0.0005", server=server)
    assert code == 0
    taken = {stage for stage, state in states(said).items() if state == "cached"}
    assert taken == {"data", "audit", "sft", "admission", "triage", "clusters"}


@pytest.mark.slow
def test_a_refusal_ends_the_line_with_a_report_and_exit_code_3(project: Path, server: str) -> None:
    code, said = run(project, "--set", "triage.min_headroom=1", server=server)
    assert code == 3, said
    assert states(said)["train"] == "refused"
    assert "evaluate" not in states(said)
    assert set(artifacts(server, run_id(said))) == {"run-estimate", "run-health", "run-report"}
    assert "triage refused the checkpoint" in said
    assert "report.html" in said


@pytest.mark.slow
def test_a_failed_gate_still_gives_a_report_and_exit_code_3(project: Path, server: str) -> None:
    code, said = run(project, "--set", "gate.min_gain=0.9", server=server)
    assert code == 3, said
    assert states(said)["report"] == "done"
    assert "the gate failed" in said
    assert "awaiting approval" not in said


@pytest.mark.slow
def test_killed_outright_the_same_command_continues(project: Path) -> None:
    first = Run(project, "--set", "seed=1", *LONG)
    first.wait_until_training(project)
    code, said = run(project, "--set", "seed=1", *LONG)
    assert code == 2
    assert f"in progress in process {first.pid}" in said

    started = list(family(project))
    first.kill()
    first.wait()
    code, said = run(project, "--set", "seed=1", *LONG)
    assert code == 0, said
    assert started and not any(map(lives, started))
    log = (first.workspace(project) / "logs/train.log").read_text(encoding="utf-8")
    starts = [int(line.split()[-1]) for line in log.splitlines() if line.startswith("train starts at")]
    assert starts[0] == 0
    assert starts[1] > 0
    assert read_json(first.workspace(project) / "out/train.json")["steps"] == 400


def reached(run: Run, whom: str) -> list[int]:
    """The processes that a signal to the run, to its group, or to its whole container reaches."""
    started = psutil.Process(run.pid).children(recursive=True) if whom != "run" else []
    pids = [run.pid]
    for one in started:
        with contextlib.suppress(ProcessLookupError):  # not all live as long as the run
            if whom == "container" or os.getpgid(one.pid) == run.pid:
                pids.append(one.pid)
    return pids


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "whom", "code"),
    [
        (signal.SIGINT, "group", 130),
        (signal.SIGTERM, "run", 143),
        (signal.SIGTERM, "group", 143),
        (signal.SIGTERM, "container", 143),
    ],
)
def test_a_signal_ends_the_run_and_all_it_started(project: Path, number: signal.Signals, whom: str, code: int) -> None:
    stopped = Run(project, "--set", f"name={whom}-{number}", *LONG)
    mark = stopped.wait_until_training(project)
    started = psutil.Process(stopped.pid).children(recursive=True)
    for process in reached(stopped, whom):
        with contextlib.suppress(ProcessLookupError):  # the run may have ended it already
            os.kill(process, number)
    assert stopped.wait(30) == code
    assert "the same command continues" in stopped.said()
    assert "Traceback" not in stopped.said()
    assert mark.exists()
    assert list(family(project)) == []
    assert not any(map(lives, started))


@pytest.mark.slow
def test_a_stage_that_is_killed_is_said_to_have_failed(project: Path, server: str) -> None:
    process = Run(project, "--set", "seed=4", *LONG, server=server)
    process.wait_until_training(project)
    stage = next(child for child in family(project) if child.cmdline()[2:4] == ["components", "train"])
    stage.kill()
    assert process.wait(60) == 2
    assert "stage train failed" in process.said()
    assert "logs/train.log" in process.said()


@pytest.mark.slow
def test_a_bug_in_a_stage_keeps_its_traceback_in_the_log(project: Path, server: str) -> None:
    broken = project / "components/stages/clusters.py"
    before = broken.read_text(encoding="utf-8")
    broken.write_text(f"{before}\n\ndel run\n", encoding="utf-8")
    try:
        code, said = run(project, server=server)
    finally:
        broken.write_text(before, encoding="utf-8")
    assert code == 1
    assert "stage clusters failed: AttributeError" in said
    log = Path(said.partition("log:")[2].split()[0])
    assert "Traceback" in log.read_text(encoding="utf-8")
