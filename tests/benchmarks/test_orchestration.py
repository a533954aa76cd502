"""What Prefect and DVC cost: the demo stage by stage, bare, beside the same as a run of a deployment.

Prints a table and asserts nothing about time; machines differ. ``EVENKEEL_BENCH_STEPS`` is the number of training
steps; some 150 make a run of ten minutes on two cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from components.config import dump, load, pin_inputs
from components.stages import wanted
from tests.code_graph import ROOT
from tests.project import commit_all, copy_project
from tests.served.service import Service

STEPS = os.environ.get("EVENKEEL_BENCH_STEPS", "40")
OVERRIDES = [f"train.steps={STEPS}"]
TEN_MINUTES = 600.0


def bare(folder: Path) -> float:
    """Seconds that the stages take one after the other, each a process, as any line of commands would start them."""
    settings = pin_inputs(load(ROOT / "configs/demo.yaml", OVERRIDES))
    folder.mkdir()
    (folder / "params.yaml").write_text(dump(settings), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "EVENKEEL_PROGRESS": str(folder / "progress.jsonl")}
    began = time.perf_counter()
    for stage in wanted(settings):
        subprocess.run(
            [sys.executable, "-m", "components", stage], cwd=folder, env=env, check=True, capture_output=True
        )
    return time.perf_counter() - began


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.timeout(3600)
def test_what_prefect_and_dvc_cost(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    commit_all(copy_project(project))
    alone = bare(tmp_path / "bare")
    with Service(project) as service:
        time.sleep(10)  # the server has settled
        triggered = time.time()
        run = service.trigger("post-training", overrides=OVERRIDES)
        ended = service.wait(run, seconds=3000)
        tasks = service.task_runs(run)
    assert ended["state_type"] == "COMPLETED", ended["state"]
    first = min(moment(task["start_time"]) for task in tasks if task["start_time"])
    whole = moment(ended["end_time"]) - triggered
    table = Table("", "seconds", title=f"the demo with {STEPS} steps")
    table.add_row("stages, bare", f"{alone:.1f}")
    table.add_row("run of the deployment", f"{whole:.1f}")
    table.add_row("difference", f"{whole - alone:.1f}")
    table.add_row("from trigger to the first stage", f"{first - triggered:.1f}")
    share = (whole - alone) / max(alone, TEN_MINUTES)
    table.add_row("difference, of ten minutes or of the run if longer", f"{share:.1%}")
    Console().print(table)
