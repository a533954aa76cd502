"""Nights one after the other, from the UI's side and from the command line: what is new is trained on, no more."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from components.files import read_json, read_jsonl
from flows.host.git import git
from tests import fake_line
from tests.served.service import Service, evenkeel

pytestmark = pytest.mark.timeout(1200)  # whole runs, one after the other
CONFIG = "configs/night.yaml"
LONG = ("--set", "train.steps=400")
"""Eight seconds in stage train."""
PATIENCE = 240.0
"""Seconds that a run of ten stages may take on a busy machine."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fake project whose rows come from a file, with an empty folder for incoming data."""
    built = fake_line.build(tmp_path_factory.mktemp("nights"))
    (built / "data").mkdir()
    (built / "incoming").mkdir()
    (built / "data/base.jsonl").write_text(rows("sft", "train", "dev", "test"), encoding="utf-8")
    text = "extends: [demo.yaml]\nname: night\ndata: {source: {kind: jsonl, path: data/base.jsonl}}\n"
    (built / CONFIG).write_text(text, encoding="utf-8")
    git(built, "add", "--all")
    git(built, "commit", "--quiet", "--message=night")
    return built


def rows(*questions: str) -> str:
    return "".join(json.dumps({"question": text, "answer": "1"}) + "\n" for text in questions)


def arrives(project: Path, name: str, *questions: str) -> None:
    """A file of an hour ago; the fake data stage puts a row into the split that its question begins with."""
    path = project / "incoming" / name
    path.write_text(rows(*questions), encoding="utf-8")
    os.utime(path, (time.time() - 3600,) * 2)


def night(service: Service, **parameters: object) -> str:
    """A night started in the UI; the flow run's id once it has ended."""
    run = service.trigger("nightly", config=CONFIG, incoming="incoming", **parameters)
    assert service.wait(run, seconds=PATIENCE)["state_type"] == "COMPLETED", service.logs(run)
    return run


def stages(service: Service, run: str) -> dict[str, str]:
    """Stage -> name of the state that its task ended in."""
    return {task["name"]: task["state_name"] for task in service.task_runs(run)}


def summary(service: Service, run: str) -> str:
    return str(service.artifacts(run)["nightly"]["data"])


def test_nights_one_after_the_other(service: Service, project: Path) -> None:
    first = night(service)
    assert set(stages(service, first).values()) == {"Completed"}
    assert "- no data joined\n- starts from the base\n" in summary(service, first)

    again = night(service)
    assert service.flow_run(again)["state_name"] == "NothingNew"
    assert stages(service, again) == {}
    assert "nothing new since" in summary(service, again)

    arrives(project, "b.jsonl", "train 2", "train 3")
    second = night(service)
    found = stages(service, second)
    # The new rows are in the train split: what does not read that split is not done again. The evaluation does, to see
    # whether a test prompt is in it.
    assert {stage for stage, state in found.items() if state == "Cached"} == {"sft", "gate"}
    assert "- b.jsonl: 2 rows joined" in summary(service, second)
    assert "unchanged: sft, gate" in summary(service, second)
    workspace = service.workspace(second)
    assert [row["id"] for row in read_jsonl(workspace / "out/data/train.jsonl")] == ["train", "train 2", "train 3"]

    digest = str(read_json(workspace / "out/gate.json")["checkpoint_sha256"])
    assert evenkeel(project, "approve", digest[:12], "--by", "Ada", "--config", CONFIG).returncode == 0
    arrives(project, "c.jsonl", "train 4")
    third = night(service, start="champion")
    said = summary(service, third)
    assert f"starts from the champion {digest[:12]}, compared with the champion {digest[:12]}" in said
    assert "against the champion's 60.0 %: +10.0 points" in said.replace("\u00a0", " ")
    settings = (service.workspace(third) / "params.yaml").read_text(encoding="utf-8")
    assert "kind: checkpoint" in settings
    assert re.search(r"^sft:\n(  .*\n)*?  steps: 0$", settings, re.MULTILINE)


def test_on_the_command_line_nothing_new_is_said_and_nothing_is_run(service: Service, project: Path) -> None:
    arguments = ("nightly", "--config", CONFIG, "--incoming", "incoming", "--set", "name=typed")
    first = evenkeel(project, *arguments)
    assert first.returncode == 0, first.stderr
    assert "starts from the base" in first.stdout
    assert "unchanged: data" in first.stdout or "executed: data" in first.stdout
    again = evenkeel(project, *arguments)
    assert (again.returncode, again.stderr) == (0, "")
    assert "nothing new since" in again.stdout


def test_a_concurrent_night_is_left_out_with_a_clear_state(service: Service, project: Path) -> None:
    parameters = {"config": CONFIG, "overrides": ["name=busy", "train.steps=400"]}
    run = service.trigger("nightly", **parameters)
    service.wait_until_training("busy")
    second = evenkeel(project, "nightly", "--config", CONFIG, "--set", "name=busy", *LONG)
    assert second.returncode == 2
    assert "a night is at work in process" in second.stderr
    assert service.wait(run, seconds=PATIENCE)["state_type"] == "COMPLETED"


def test_a_source_that_nothing_can_join_ends_in_a_clear_state(service: Service) -> None:
    run = service.trigger("nightly", config="configs/demo.yaml", incoming="incoming")
    ended = service.wait(run)
    assert ended["state_name"] == "Failed"
    assert ended["state"]["message"].startswith("incoming data cannot join a source of kind generated")
    assert "Traceback" not in service.logs(run)


def test_a_budget_stops_a_run_and_a_higher_one_continues_it(service: Service, project: Path) -> None:
    overrides = ["name=short", "train.steps=3000"]  # a minute of training, and more on a busy machine
    history = project / ".state/history.jsonl"
    history.unlink(missing_ok=True)  # what is known from it would refuse the run
    run = service.trigger("post-training", config=CONFIG, overrides=overrides, max_hours=20 / 3600)
    ended = service.wait(run, seconds=PATIENCE)
    assert (ended["state_type"], ended["state_name"]) == ("FAILED", "BudgetSpent"), service.logs(run)
    assert "the budget is spent" in ended["state"]["message"]
    assert "run-estimate" in service.artifacts(run)
    (workspace,) = (project / "runs").glob("short-*")
    resume = ("run", "--resume", workspace.name, "--set")
    assert f"evenkeel {' '.join(resume)} budget.hours=" in ended["state"]["message"]

    for seconds in (40, 80, 160, 320):  # how long the stages before the training take depends on the machine
        if (workspace / ".state/train.done").exists():
            break
        stopped = evenkeel(project, *resume, f"budget.hours={seconds / 3600}")
        assert stopped.returncode == 2
        assert "the budget is spent" in stopped.stderr
    resumed = evenkeel(project, *resume, "budget.hours=1")
    assert resumed.returncode == 0, resumed.stderr
    log = (workspace / "logs/train.log").read_text(encoding="utf-8")
    first, *others = (int(line.split()[-1]) for line in log.splitlines() if line.startswith("train starts at"))
    assert first == 0 < others[-1]
    taken = sum(row["seconds"] for row in read_jsonl(workspace / ".state/spent.jsonl"))
    assert taken > 3000 * 0.02

    more = ("--set", "train.steps=6000", "--set", "budget.hours=0.005")
    refused = evenkeel(project, "run", "--config", CONFIG, "--set", "name=long", *more)
    assert refused.returncode == 2
    assert re.search(r"would take longer than its budget: 0\.\d+ hours estimated, 0\.005 allowed", refused.stderr)
    assert not list((project / "runs").glob("long-*"))
