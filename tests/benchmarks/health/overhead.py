"""What watching costs: processor time of the checks of a step, and of a diagnosis, compared with a step of the demo.

``python -m tests.benchmarks.health.overhead --work FOLDER`` prints both; it needs the checkpoint of the trial's seed 0.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import torch

from components.config.reading import merge
from components.data.prompts import read_prompts
from components.health.diagnosis import Experiments
from components.scheduling import ranked_clusters
from components.training import experiments, loop, update
from components.training.assembly import assembled
from tests.benchmarks.health.arms import DEFAULT_RULES, arms_of
from tests.benchmarks.health.grounds import TOY
from tests.benchmarks.health.training import prepared, workspace
from tests.benchmarks.timed import timed
from tests.recipes import recipe_settings

STEPS = 12
SIZE = {"train": {"steps": STEPS, "prompts_per_step": 32, "eval_every": 10, "eval_prompts": 96, "eval_samples": 4}}
"""The demo's step."""
CHECKS = [
    (update, "rows_of"),
    (update, "effect"),
    *((loop, name) for name in ("inspected", "learnable", "usable_groups", "watch", "with_broken", "followed")),
]
"""Where the loop finds each check, and its name there."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-trial")
    spent, whole, diagnosis = measured(parser.parse_args().work)
    for name, seconds in sorted(spent.items()):
        print(f"{name:15} {seconds / STEPS * 1000:8.2f} ms a step, {seconds / whole:.2%}")
    print(f"all checks      {sum(spent.values()) / STEPS * 1000:8.2f} ms a step, {sum(spent.values()) / whole:.2%}")
    print(f"a diagnosis     {diagnosis:8.2f} s, {diagnosis / (whole / STEPS):.2f} steps")


def measured(work: Path) -> tuple[dict[str, float], float, float]:
    """Seconds of processor time by check, of all steps, and of one diagnosis."""
    torch.set_num_threads(1)
    (arm,) = arms_of("respond", DEFAULT_RULES)
    spent: dict[str, float] = defaultdict(float)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        layout = workspace(prepared(work, 0), Path(name))
        tree = merge(TOY.healthy["dapo_uniform"].settings(0, arm.changes), SIZE)
        settings = recipe_settings(layout.root, "dapo", "demo.yaml", {}, tree)
        clusters = ranked_clusters(read_prompts(layout.split("train")), layout)
        for module, check in CHECKS:
            stack.enter_context(patch.object(module, check, timed(check, getattr(module, check), spent)))
        parts = stack.enter_context(assembled(settings, layout, clusters))
        began = time.process_time()
        loop.train(parts, lambda record: None)
        whole = time.process_time() - began
        began = time.process_time()
        experiments.measured(parts, Experiments(), parts.state.candidates[-1])
        return dict(spent), whole, time.process_time() - began


if __name__ == "__main__":
    main()
