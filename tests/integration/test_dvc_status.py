"""DVC itself repeats the stages that `tests/unit/test_stage_code.py` computes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from components.stages import STAGES
from tests.code_graph import ROOT
from tests.project import commit_all, copy_project
from tests.stage_code import code_of

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CHANGED = (
    "registry/s3/uploads.py",
    "health/summaries/phrases.py",
    "launch/processes.py",
    "report/templates/report.jinja",
    "objectives/advantages/centred.py",
    "policy/logprobs.py",
    "printing.py",
)

READ = (
    *("data/sft.jsonl", "data/train.jsonl", "data/dev.jsonl", "data/test.jsonl", "data/consistency.json"),
    *("data/validation.html", "sft/checkpoint", "train/checkpoint", "train/records.jsonl", "train/pairs.jsonl"),
)
"""Parts of outputs that are folders, which other stages depend on."""


@pytest.fixture(scope="module")
def up_to_date(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which nothing is to be done, as far as DVC knows."""
    project = commit_all(copy_project(tmp_path_factory.mktemp("dvc") / "project"))
    for entry in yaml.safe_load((project / "dvc.yaml").read_text(encoding="utf-8"))["stages"].values():
        for out in (one for kind in ("outs", "metrics", "plots") for one in entry.get(kind, [])):
            path = project / (out if isinstance(out, str) else next(iter(out)))
            path = path if path.suffix else path / "made"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
    for name in READ:
        (project / "out" / name).write_text("{}")
    dvc(project, "commit", "--force", "--quiet")
    return project


def dvc(project: Path, *arguments: str) -> str:
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    command = [sys.executable, "-m", "dvc", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True).stdout


def changed_stages(project: Path) -> set[str]:
    return set(json.loads(dvc(project, "status", "--json")))


@pytest.mark.parametrize("name", CHANGED)
def test_dvc_repeats_the_stages_that_use_a_changed_file(name: str, up_to_date: Path) -> None:
    file = up_to_date / "components" / name
    before = file.read_bytes()
    assert changed_stages(up_to_date) == set()
    file.write_bytes(before + b"# changed\n")
    try:
        expected = {stage for stage in STAGES if ROOT / "components" / name in code_of(stage)}
        assert changed_stages(up_to_date) == expected
    finally:
        file.write_bytes(before)
