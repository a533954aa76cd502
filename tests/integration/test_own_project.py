"""The wheel in an environment of its own: a new project, its tests, and a run to a candidate."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flows.host.git import git
from tests.integration.small import NO_LIMITS, SMALL
from tests.wheel import build, environment

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_new_project_comes_to_a_candidate_and_records_the_package(tmp_path: Path) -> None:
    programs = environment(build(tmp_path), tmp_path / "venv")
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    outside["PATH"] = os.pathsep.join([str(programs), outside.get("PATH", os.defpath)])

    def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(words, cwd=folder, env=outside, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    call(tmp_path, "evenkeel", "init", "mine")
    project = tmp_path / "mine"
    call(project, "python", "-m", "pytest", "-q")
    call(project, "evenkeel", "doctor")
    settings = [word for pair in (*SMALL, *NO_LIMITS) for word in ("--set", pair)]
    call(project, "evenkeel", "run", "--config", "configs/mine.yaml", *settings)
    shown: dict[str, Any] = json.loads(call(project, "evenkeel", "show", "challenger", "--json").stdout)
    branch = f"runs/{shown['run']['run']}"
    assert json.loads(git(project, "show", f"{branch}:run.json"))["outcome"]["candidate"] == shown["digest"]
    call(project, "evenkeel", "export", "challenger", "--format", "gguf", "--to", "release")
    assert shown["digest"] in (project / "release/README.md").read_text(encoding="utf-8")
    assert git(project, "show", f"{branch}:constraints.txt").splitlines()[1].startswith("evenkeel==")
    assert json.loads(git(project, "show", f"{branch}:run.json"))["machine"]["packages"]["evenkeel"]
    locked = git(project, "show", f"{branch}:dvc.lock")
    assert "package/train" in locked and "components/" not in locked
