"""A run that failed and is retried from the UI; one that came to its end and is reproduced there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.files import read_json
from flows.host.git import git
from tests.served.service import Service

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def retried(project: Path, service: Service) -> tuple[str, Path]:
    """A flow run whose stage train was killed and that was then retried, on a tree that has changed since."""
    overrides = ["name=retried", "seed=31", "train.steps=400"]
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=overrides)
    workspace = service.wait_until_training("retried", seconds=300).parent.parent
    stage = next(one for one in service.family() if one.cmdline()[2:4] == ["components", "train"])
    stage.kill()
    assert service.wait(run, seconds=200)["state_type"] == "FAILED"
    (project / "later.txt").write_text("changed since", encoding="utf-8")
    service.post(f"/flow_runs/{run}/set_state", state={"type": "SCHEDULED", "name": "AwaitingRetry"})
    service.wait(run, "COMPLETED", seconds=300)
    return run, workspace


def test_a_retry_redoes_only_what_is_missing_of_the_same_run(retried: tuple[str, Path], project: Path) -> None:
    _, workspace = retried
    assert [folder.name for folder in (project / "runs").glob("retried-*")] == [workspace.name]
    log = (workspace / "logs/data.log").read_text(encoding="utf-8")
    assert log.count("Running stage 'data'") == 1
    training = (workspace / "logs/train.log").read_text(encoding="utf-8").splitlines()
    starts = [int(line.split()[-1]) for line in training if line.startswith("train starts at")]
    assert starts[0] == 0 < starts[1]
    record = read_json(workspace / "run.json")
    assert record["outcome"]["state"] == "candidate"
    assert json.loads(git(project, "show", f"refs/heads/runs/{workspace.name}:run.json")) == record
    assert record["stages"]["data"]["state"] == "done"


def test_a_recorded_run_is_reproduced_from_the_ui(retried: tuple[str, Path], service: Service) -> None:
    run = service.trigger("reproduce", run_id=retried[1].name)
    assert service.wait(run, seconds=400)["state_type"] == "COMPLETED"
    shown = service.artifacts(run)["reproduction"]["data"]
    assert "Everything came out as recorded" in shown


def test_a_run_that_was_not_recorded_is_one_clear_failure(service: Service) -> None:
    run = service.trigger("reproduce", run_id="nothing")
    ended = service.wait(run)
    assert ended["state_type"] == "FAILED"
    assert "there is no branch runs/nothing here" in ended["state"]["message"]
