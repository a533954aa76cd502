"""Where the time of a demo training step goes: `pytest -s` on this file.

Processor time of this process, one thread; the verifiers' workers are not in it. ``EVENKEEL_BENCH_STEPS``: how many.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from components.config import load
from components.layout import Layout
from components.learner.torch_learner import TorchLearner
from components.rewards import Scorer
from components.rollout.torch_engine import TorchEngine
from components.stages import run_stage
from tests.benchmarks.timed import timed
from tests.recipes import CONFIGS, prepare

STEPS = int(os.environ.get("EVENKEEL_BENCH_STEPS", "8"))
PARTS: dict[str, tuple[type, str]] = {
    "rollout": (TorchEngine, "generate"),
    "scoring": (Scorer, "score_groups"),
    "log-probabilities of the reference": (TorchLearner, "reference"),
    "update": (TorchLearner, "step"),
    "sync": (TorchEngine, "load_weights"),
}


@pytest.mark.timeout(3600)
def test_what_a_step_spends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(prepare(tmp_path, "dapo", {}))
    spent = dict.fromkeys(PARTS, 0.0)
    for part, (owner, name) in PARTS.items():
        monkeypatch.setattr(owner, name, timed(part, getattr(owner, name), spent))
    settings = load(CONFIGS / "demo.yaml", [f"train.steps={STEPS}", "triage.override=only the time matters"])
    began = time.process_time()
    run_stage("train", settings, layout)
    total = time.process_time() - began
    spent["the rest"] = total - sum(spent.values())
    table = Table("part", "ms a step", "share", title=f"{STEPS} demo steps, {1000 * total / STEPS:,.0f} ms each")
    for part in [*PARTS, "the rest"]:
        table.add_row(part, f"{1000 * spent[part] / STEPS:,.0f}", f"{spent[part] / total:.0%}")
    Console().print(table)
