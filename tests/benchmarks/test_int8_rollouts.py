"""What rollouts from a rounded copy of the policy cost, and what TIS gives back: `pytest -s` on this file.

Same SFT checkpoint and same steps for every arm, three seeds. Prints a table and asserts nothing about accuracy: on a
model as small as the demo's the gap is small, and the table is there to say so. ``EVENKEEL_BENCH_STEPS`` is the length.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

import pytest
from rich.console import Console
from rich.table import Table

from components.config import load
from components.files import read_json, read_jsonl
from components.layout import Layout
from components.stages import run_stage
from tests.recipes import CONFIGS, prepare

STEPS = int(os.environ.get("EVENKEEL_BENCH_STEPS", "12"))
SEEDS = (0, 1, 2)
ARMS = {
    "fp32": ("policy", True),
    "bf16": ("bfloat16", True),
    "int8, TIS": ("int8", True),
    "int8": ("int8", False),
    "int4, TIS": ("int4", True),
    "int4": ("int4", False),
}
"""Precision of the engine's copy, and whether token TIS corrects for it."""
SIGNALS = ("mismatch_mean", "mismatch_k3", "ess")
FIGURES = ("pass@1", "greedy", *SIGNALS)

Row = dict[str, float]


def measure(prepared: Path, folder: Path, arm: str, seed: int) -> Row:
    """Train one arm; held-out accuracy of its checkpoint at fp32, and means of its signals over the steps."""
    precision, corrected = ARMS[arm]
    changes = [
        f"seed={seed}",
        f"rollout.engine.precision={precision}",
        "objective.correction=" + ("{kind: tis_token, cap: 2.0}" if corrected else "null"),
        "triage.override=every arm starts from the same checkpoint",
        "health.enabled=false",
        "schedule={kind: uniform}",
        "rollout.dynamic_sampling=null",
        "rollout.two_stage=null",
        "learner={lr: 3.0e-4, warmup: 4}",
        f"train={{steps: {STEPS}, prompts_per_step: 16, eval_every: {STEPS}, eval_prompts: 16, eval_samples: 2}}",
        "evaluation={prompts: 150, samples: 4}",
    ]
    shutil.copytree(prepared / "out", folder / "out")
    settings, layout = load(CONFIGS / "demo.yaml", changes), Layout(folder)
    run_stage("train", settings, layout)
    run_stage("evaluate", settings, layout)
    trained = read_json(layout.evaluation)["trained"]
    steps = [row["signals"] for row in read_jsonl(layout.records)]
    signals = {name: fmean(step[name] for step in steps if name in step) for name in SIGNALS}
    return {"pass@1": trained["pass_at_1"], "greedy": trained["greedy"], **signals}


def table(rows: dict[str, list[Row]]) -> Table:
    """Mean and standard deviation over seeds."""
    shown = Table("sampler", *FIGURES, title=f"{STEPS} steps, {len(SEEDS)} seeds")
    for arm, of_seeds in rows.items():
        shown.add_row(arm, *(spread([row[name] for row in of_seeds]) for name in FIGURES))
    return shown


def spread(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{fmean(values):.3g}"
    return f"{fmean(values):.3g} ± {stdev(values):.1g}"


@pytest.mark.timeout(7200)
def test_accuracy_with_and_without_the_correction(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, "int8", {})
    rows = {
        arm: [measure(prepared, tmp_path / f"{number}-{seed}", arm, seed) for seed in SEEDS]
        for number, arm in enumerate(ARMS)
    }
    Console().print(table(rows))
    gaps = {arm: fmean(row["mismatch_k3"] for row in of_seeds) for arm, of_seeds in rows.items()}
    assert gaps["fp32"] < gaps["bf16"] < gaps["int8"] < gaps["int4"]
