"""Who runs a workspace, and how that ended."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from components.errors import InputError, NoCandidate
from components.files import read_json, write_json, write_text
from flows.run.workspace import RunRequest, Workspace
from flows.watching import execution
from flows.watching.execution import Execution, executing, read


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "demo-1"
    progress, snapshot = root / ".state/progress.jsonl", SimpleNamespace(commit="c0ffee")
    request = RunRequest("demo.yaml", ("seed=1",), "dapo")
    made = SimpleNamespace(root=root, run_id="demo-1", progress=progress, snapshot=snapshot, request=request)
    return cast(Workspace, made)


def ended(workspace: Workspace, error: BaseException | None = None) -> Execution:
    """The record of an execution that ended with this error."""
    try:
        with executing(workspace, "post-training") as set_outcome:
            set_outcome("d1e5", "")
            if error:
                raise error
    except BaseException as raised:
        assert raised is error
    found = read(workspace.root)
    assert found is not None
    return found


def test_while_a_flow_runs_its_process_is_named_and_alive(workspace: Workspace) -> None:
    assert read(workspace.root) is None
    with executing(workspace, "post-training"):
        found = read(workspace.root)
        assert found is not None
        assert (found.pid, found.host, found.run_id) == (os.getpid(), platform.node(), "demo-1")
        assert found.commit == "c0ffee"
        assert found.alive
        assert found.standing == "running"


def test_a_flow_that_ends_says_what_it_came_to_and_its_stages_said_nothing_before(workspace: Workspace) -> None:
    write_text(workspace.progress, "{}")
    found = ended(workspace)
    assert not workspace.progress.exists()
    assert (found.state, found.candidate) == ("candidate", "d1e5")
    assert found.request == RunRequest("demo.yaml", ("seed=1",), "dapo")
    assert found.ended is not None
    assert not found.alive


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (NoCandidate("triage refused"), "refused", "triage refused"),
        (InputError("the disk is full"), "failed", "the disk is full"),
        (ZeroDivisionError(), "failed", "ZeroDivisionError"),
        (KeyboardInterrupt(), "stopped", ""),
        (SystemExit(143), "stopped", ""),
    ],
)
def test_a_flow_that_is_left_by_an_error_says_so(
    workspace: Workspace, error: BaseException, state: str, reason: str
) -> None:
    found = ended(workspace, error)
    assert (found.state, found.reason) == (state, reason)


def test_a_process_that_was_killed_is_dead_whoever_has_its_id(workspace: Workspace) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with executing(workspace, "post-training"):
        mine = read(workspace.root)
    assert mine is not None
    theirs = replace(mine, ended=None, state="running", pid=child.pid, created=psutil.Process(child.pid).create_time())
    assert theirs.alive
    assert replace(theirs, created=theirs.created - 100).standing == "dead"
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert theirs.standing == "dead", "a zombie is dead"
    child.wait()
    assert theirs.standing == "dead"


def test_a_process_on_another_machine_is_taken_to_live_until_it_says_that_it_ended(workspace: Workspace) -> None:
    elsewhere = replace(ended(workspace), host="elsewhere", created=0.0)
    assert not elsewhere.alive
    assert replace(elsewhere, ended=None, state="running").standing == "running"


def test_a_record_that_is_damaged_or_of_another_version_is_refused_by_name(workspace: Workspace) -> None:
    ended(workspace)
    path = workspace.root / ".state/execution.json"
    row = read_json(path)
    write_json(path, {key: value for key, value in row.items() if key != "pid"})
    with pytest.raises(InputError, match="pid"):
        read(workspace.root)
    write_text(path, "{")
    with pytest.raises(InputError, match=r"execution\.json"):
        read(workspace.root)


def test_what_a_later_version_adds_is_no_error(workspace: Workspace) -> None:
    before = ended(workspace)
    path = workspace.root / ".state/execution.json"
    write_json(path, read_json(path) | {"colour": "blue"})
    assert read(workspace.root) == before
    assert execution.now() >= before.began
