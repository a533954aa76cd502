"""Whole runs and what is kept of them: on another machine, two at once, stopped and gone on with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from components.files import read_json
from flows.host.git import git
from tests import fake_line
from tests.integration.test_evenkeel_run import LONG, Run, states
from tests.project import run_id
from tests.unit.flows_project import add_store

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]
EVENKEEL = "from flows.cli import main; main()"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fake project with a store of its outputs and a hub of its branches, all folders of this machine."""
    home = tmp_path_factory.mktemp("home")
    (home / "project").mkdir()
    root = fake_line.build(home / "project")
    add_store(root, "../../store")
    git(home, "init", "--quiet", "--bare", "--initial-branch=main", "hub.git")
    git(root, "remote", "add", "hub", f"file://{home}/hub.git")
    git(root, "push", "--quiet", "hub", "main")
    return root


def run(project: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of a whole run, however busy the machine is."""
    process = Run(project, *arguments)
    return process.wait(600), process.said()


def call(folder: Path, *command: str) -> tuple[int, str]:
    """Exit code and output of a Python program run in a folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_run_comes_out_again_on_another_machine_by_plain_dvc_and_by_reproduce(project: Path, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "rows.jsonl").write_text('{"question": "1+1", "answer": "2"}\n', encoding="utf-8")
    source = f"data.source={{kind: jsonl, path: {given}/rows.jsonl}}"
    code, said = run(project, "--set", source, "--set", "record.git_remote=hub")
    assert code == 0, said
    assert "pushed     outputs to the DVC remote store" in said
    assert "pushed     the branch to hub" in said
    name = run_id(said)
    shutil.rmtree(given)

    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", f"file://{project.parent}/hub.git", "clone")
    store = f"['remote \"store\"']\n    url = {project.parent}/store\n"
    (clone / ".dvc/config.local").write_text(store, encoding="utf-8")
    git(clone, "checkout", "--quiet", f"runs/{name}")
    for command in (["-m", "dvc", "pull"], ["-m", "dvc", "repro"]):
        code, said = call(clone, *command)
        assert code == 0, said
    assert "Running stage" not in said
    code, said = call(clone, "-m", "dvc", "repro", "--force")
    assert code == 0, said
    assert said.count("Running stage") == 11
    assert git(clone, "status", "--porcelain") == ""

    git(clone, "checkout", "--quiet", "main")
    code, said = call(clone, "-c", EVENKEEL, "reproduce", name)
    assert code == 0, said
    assert f"{name} came out as recorded, to the byte" in said


def test_two_runs_at_once_share_the_cache_and_do_not_meet(project: Path) -> None:
    both = [Run(project, "--set", f"seed={seed}", "--set", "train.steps=60") for seed in (11, 12)]
    ended = [(one.wait(600), one.said()) for one in both]
    assert [code for code, _ in ended] == [0, 0], ended
    for one, (_, said) in zip(both, ended, strict=True):
        record = read_json(one.workspace(project) / "run.json")
        assert record["outcome"]["state"] == "candidate"
        branch = f"refs/heads/runs/{record['run_id']}"
        assert json.loads(git(project, "show", f"{branch}:run.json")) == record
        assert "problem" not in said
    _, said = call(both[0].workspace(project), "-m", "dvc", "status", "--json")
    assert json.loads(said.splitlines()[-1]) == {}, said


def test_killed_outright_a_run_is_gone_on_with_by_its_id_whatever_the_tree_holds(project: Path) -> None:
    killed = Run(project, "--set", "seed=21", *LONG)
    killed.wait_until_training(project)
    killed.kill()
    killed.wait()
    run_id = killed.workspace(project).name
    (project / "README.md").write_text("changed since\n", encoding="utf-8")
    try:
        code, said = run(project, "--resume", "nothing")
        assert code == 2
        assert f"{run_id}  unfinished" in said
        code, said = run(project, "--resume", run_id)
    finally:
        (project / "README.md").unlink()
    assert code == 0, said
    ended = states(said)
    assert {stage for stage, state in ended.items() if state == "cached"} == {
        "data", "audit", "sft", "admission", "triage", "clusters"
    }  # fmt: skip
    log = (project / "runs" / run_id / "logs/train.log").read_text(encoding="utf-8")
    starts = [int(line.split()[-1]) for line in log.splitlines() if line.startswith("train starts at")]
    assert starts[0] == 0 < starts[1]
    code, again = run(project, "--resume", run_id)
    assert code == 0, again
    assert "proposed and recorded again" in again
    assert "awaiting approval" in again
    assert states(again) == {}
    check_repaired(project, run_id)


def check_repaired(project: Path, run_id: str) -> None:
    """Resuming a finished run restores what was removed of its candidate's record, or of its outputs."""
    candidate = read_json(project / "runs" / run_id / "run.json")["outcome"]["candidate"]
    record = project / "registry/objects/candidates" / f"{candidate}.json"
    kept = record.read_bytes()
    record.write_text("{}", encoding="utf-8")
    code, said = run(project, "--resume", run_id)
    assert (code, record.read_bytes()) == (2, b"{}"), said  # what cannot be read may be another's: it is not replaced
    record.unlink()
    (project / "runs" / run_id / "out/gate.json").unlink()
    code, said = run(project, "--resume", run_id)
    assert code == 0, said
    assert "not as its stages left them: out/gate.json; they run again" in said
    assert record.read_bytes() == kept
    record.unlink()
    code, said = run(project, "--resume", run_id)
    assert (code, states(said), record.read_bytes()) == (0, {}, kept), said
