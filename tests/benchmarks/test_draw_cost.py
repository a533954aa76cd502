"""What a schedule of a million prompts, all of them measured, costs a step: `pytest -s` on this file.

Processor time, least of seven calls. ``EVENKEEL_BENCH_PROMPTS``: how many.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tests.benchmarks.growth.schedules import COSTS, ads, difficulty_pools, forecast, measure, uniform

PROMPTS = int(os.environ.get("EVENKEEL_BENCH_PROMPTS", str(10**6)))
SHOWN = ("draw_ms", "observe_ms", "state_kb")


@pytest.mark.timeout(3600)
def test_what_a_draw_costs(tmp_path: Path) -> None:
    costs = [cost for cost in COSTS if cost.field in SHOWN]
    table = Table("schedule", *(f"{cost.what}, {cost.unit}" for cost in costs), title=f"{PROMPTS:,} prompts")
    for build in (uniform, difficulty_pools, ads, forecast):
        row = measure(build, PROMPTS, tmp_path)
        assert row["draw_ms"] > 0
        table.add_row(build.__name__, *(f"{row[cost.field]:,.2f}" for cost in costs))
    Console().print(table)
