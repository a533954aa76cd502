"""A run by hand whose Prefect server became unreachable ends with its own outcome, without a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import psutil
import pytest

from components.errors import EvenkeelError
from flows.prefect_runtime.environment import prefect_environment
from flows.prefect_runtime.server import outcome_on_disk
from flows.run.workspace import Workspace
from flows.watching.execution import Execution, write
from tests.unit import flows_project

LOST = httpx.ConnectError("All connection attempts failed")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return flows_project.ready(flows_project.build(tmp_path_factory.mktemp("lost") / "project"))


@pytest.fixture
def workspace(built: Workspace) -> Workspace:
    """One that has not run yet."""
    (built.layout.state / "execution.json").unlink(missing_ok=True)
    return built


def ended(workspace: Workspace, **how: str | int | None) -> None:
    created = psutil.Process().create_time()
    base = {"pid": os.getpid(), "created": created, "host": "here", "began": "2026-01-01T10:00:00+00:00"}
    row = {**base, "ended": "2026-01-01T10:02:05+00:00", **how}
    write(workspace.root, Execution(run_id=workspace.run_id, flow="post-training", commit="c0ffee", **row))


def test_a_run_that_came_to_its_end_keeps_its_answer(workspace: Workspace) -> None:
    ended(workspace, state="candidate", candidate="d1e5")
    assert outcome_on_disk(workspace, LOST).candidate == "d1e5"
    ended(workspace, state="refused", reason="the gate failed")
    found = outcome_on_disk(workspace, LOST)
    assert (found.candidate, found.reason) == (None, "the gate failed")


def test_a_run_that_failed_says_why(workspace: Workspace) -> None:
    ended(workspace, state="failed", reason="stage train failed: no memory")
    with pytest.raises(EvenkeelError, match="stage train failed"):
        outcome_on_disk(workspace, LOST)


@pytest.mark.parametrize("how", [{"ended": None}, {"state": "candidate", "pid": 1}, None])
def test_before_the_end_it_says_how_to_go_on_and_an_earlier_answer_is_not_taken_for_its_own(
    workspace: Workspace, how: dict[str, str | int | None] | None
) -> None:
    if how is not None:
        ended(workspace, **how)
    with pytest.raises(EvenkeelError, match=r"became unreachable \(ConnectError\)") as caught:
        outcome_on_disk(workspace, LOST)
    assert "the same command continues" in str(caught.value)


def test_a_server_that_is_gone_is_not_asked_for_minutes_and_fills_no_terminal(tmp_path: Path) -> None:
    quiet = prefect_environment(tmp_path, quiet=True)
    assert quiet["PREFECT_CLIENT_MAX_RETRIES"] == "2"
    assert quiet["PREFECT_INTERNAL_LOGGING_LEVEL"] == "CRITICAL"
