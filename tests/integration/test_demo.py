"""The whole pipeline at reduced size, every part real: `evenkeel run`, Prefect, DVC, the stages, approval."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors import safe_open

from tests.integration.small import NO_LIMITS, SMALL
from tests.project import commit_all, copy_project, run_id

pytestmark = pytest.mark.integration


def evenkeel(project: Path, *arguments: str, timeout: float = 280) -> tuple[int, str]:
    """Exit code and all output of the command line, run in ``project``."""
    command = [sys.executable, "-c", "from flows.cli import main; main()", *arguments]
    done = subprocess.run(
        command,
        cwd=project,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    return done.returncode, done.stdout


def settings(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its policy lets an untrained model pass, as the settings of its run do."""
    root = copy_project(tmp_path_factory.mktemp("demo"))
    policy = root / "configs/promotion/policy.yaml"
    limits: dict[str, Any] = {"gate": {"min_gain": -1, "min_prompts": 2, "max_truncated": 1}}
    bounds = {f"triage.{name}": {"at_least": 0} for name in ("min_teaching", "min_entropy", "min_headroom")}
    limits["runs"] = {"admission.max_prompt_share": {"at_most": 0.1}, **bounds}
    policy.write_text(yaml.safe_dump({**yaml.safe_load(policy.read_text()), **limits}), encoding="utf-8")
    return commit_all(root)


@pytest.fixture(scope="module")
def demo(project: Path) -> tuple[Path, str]:
    """The workspace of a finished run, and what the run printed."""
    code, said = evenkeel(project, "run", *settings(*SMALL, *NO_LIMITS))
    assert code == 0, said
    return project / "runs" / run_id(said), said


@pytest.mark.timeout(400)
def test_it_ends_with_a_candidate_awaiting_approval(project: Path, demo: tuple[Path, str]) -> None:
    workspace, said = demo
    gate = read(workspace / "out/gate.json")
    assert gate["result"] == "pass"
    assert "awaiting approval" in said
    assert f"evenkeel approve {gate['checkpoint_sha256'][:12]}" in said
    assert "report.html" in said


def test_every_stage_left_what_it_promises(demo: tuple[Path, str]) -> None:
    out = demo[0] / "out"
    validation = read(out / "validation.json")
    assert validation["rows"] == 1200
    assert validation["success"] is True
    assert read(out / "triage.json")["verdict"] == "accept"
    assert len((out / "train/records.jsonl").read_text().splitlines()) == 12
    assert read(out / "train.json")["outcome"] == "completed"
    assert read(out / "evaluation.json")["prompts"] == 24
    with safe_open(out / "train/checkpoint/model.safetensors", "numpy") as weights:
        assert weights.keys()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "<script" not in page


def test_the_approval_makes_it_the_champion_once(project: Path, demo: tuple[Path, str]) -> None:
    digest = read(demo[0] / "out/gate.json")["checkpoint_sha256"]
    code, said = evenkeel(project, "approve", digest[:12], "--by", "Ada", "--reason", "it is only a test")
    assert code == 0, said
    code, said = evenkeel(project, "verify")
    assert code == 0, said
    alias = read(project / "registry/objects/aliases/champion.json")
    assert alias["digest"] == digest
    code, said = evenkeel(project, "reject", digest[:12], "--by", "Ada")
    assert code == 2
    assert read(project / "registry/objects/aliases/champion.json") == alias


@pytest.mark.timeout(400)
@pytest.mark.slow
def test_a_second_machine_gets_the_same_bytes(demo: tuple[Path, str], tmp_path: Path) -> None:
    """Plain `dvc repro` on a copy that shares no cache, with the run's own params.yaml."""
    copy = commit_all(copy_project(tmp_path))
    (copy / "params.yaml").write_bytes((demo[0] / "params.yaml").read_bytes())
    command = [sys.executable, "-m", "dvc", "repro", "--quiet"]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(command, cwd=copy, env=environment, check=True, timeout=300)
    mine, theirs = (yaml.safe_load((folder / "dvc.lock").read_text())["stages"] for folder in (demo[0], copy))
    assert theirs == mine  # with `dpo`, which was not asked for: its empty outputs are recorded too
    again = subprocess.run([*command[:-1], "-v"], cwd=copy, env=environment, check=True, text=True, capture_output=True)
    assert "Running stage" not in again.stdout
