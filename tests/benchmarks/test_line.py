"""How long each stage takes and how much memory it needs: `make bench-parts`.

Prints tables and asserts nothing about time; machines differ. ``EVENKEEL_BENCH_CONFIG`` names another configuration.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest
from rich.console import Console
from rich.table import Table

from components.config import Settings, dump, load
from components.stages import STAGES

PROJECT = Path(__file__).parents[2]
CONFIG = Path(os.environ.get("EVENKEEL_BENCH_CONFIG", PROJECT / "configs" / "demo.yaml"))


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load(CONFIG)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    (folder / "params.yaml").write_text(dump(settings))
    return folder


def measured(command: list[str], cwd: Path) -> tuple[float, float]:
    """Seconds and peak resident memory (MB, children included, sampled every 50 ms) of a command that must succeed."""
    began, peak = time.perf_counter(), 0
    with psutil.Popen(command, cwd=cwd, env={**os.environ, "PYTHONPATH": str(PROJECT)}) as process:
        while process.poll() is None:
            peak = max(peak, _resident(process))
            time.sleep(0.05)
    assert process.returncode == 0, f"{command} ended with {process.returncode}"
    return time.perf_counter() - began, peak / 2**20


def _resident(process: psutil.Popen) -> int:
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_info().rss
        except psutil.NoSuchProcess:  # it ended between the listing and the look
            continue
    return total


@pytest.mark.timeout(1800)
def test_stage_times_and_memory(workspace: Path) -> None:
    table = Table("stage", "seconds", "peak MB", title=f"stages of {CONFIG.name}, one process each")
    total = 0.0
    for stage in STAGES:
        seconds, peak = measured([sys.executable, "-m", "components", stage], workspace)
        total += seconds
        table.add_row(stage, f"{seconds:.1f}", f"{peak:.0f}")
    table.add_row("all", f"{total:.1f}", "")
    Console().print(table)
    assert (workspace / "out" / "report.html").exists()
