"""What sampling ahead does to the demo's learning curve: rollouts 0, 1, 2 and 4 steps old, with and without TIS.

    python -m tests.benchmarks.staleness --out staleness.jsonl [--seeds 0] [--steps 20] [--staleness 0 1 2 4] [--jobs 2]

All runs of a seed start from the same SFT checkpoint. "Without" the sampler's probabilities count for nothing, which
settings refuse and this file does all the same. A measurement is one line of the output file; those that are there
already are not repeated. Ends with the table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from components.config import Settings
from components.config.rollout import Asynchrony
from components.data.prompts import read_prompts
from components.files import append_line, read_jsonl
from components.layout import Layout
from components.scheduling import ranked_clusters
from components.training.assembly import assembled
from components.training.loop import train
from components.types import StepRecord
from tests.recipes import prepare, recipe_settings

Row = dict[str, Any]
EVERY = 5
"""Steps between two measurements on the dev split."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then print the table."""
    options = _parser().parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    done = {(row["seed"], row["steps"], row["staleness"], row["tis"]) for row in _rows(options.out)}
    arms = [(s, options.steps, n, tis) for s in options.seeds for n in options.staleness for tis in (True, False)]
    wanted = [arm for arm in arms if arm not in done]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for ready in [pool.submit(_prepare, options.work, seed) for seed in sorted({arm[0] for arm in wanted})]:
            ready.result()
        for future in as_completed([pool.submit(measure, options.work, *arm) for arm in wanted]):
            append_line(options.out, future.result())
    print(table([row for row in _rows(options.out) if row["steps"] == options.steps]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-staleness")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--staleness", nargs="+", type=int, default=[0, 1, 2, 4])
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def _rows(path: Path) -> list[Row]:
    return list(read_jsonl(path)) if path.exists() else []


def _prepare(work: Path, seed: int) -> Path:
    return prepare(work / f"seed-{seed}", "dapo", {"seed": seed})


def arm_settings(folder: Path, seed: int, steps: int, staleness: int, tis: bool) -> Settings:
    """The demo's, with rollouts of that age. What the settings refuse is put in past their check."""
    over = {
        "seed": seed,
        "health": {"enabled": False},
        "train": {"steps": steps, "eval_every": EVERY, "checkpoint_every": 1000, "keep_pairs": 0},
    }
    settings = recipe_settings(folder, None, "demo.yaml", {}, over)
    how = Asynchrony(max_staleness=staleness) if staleness else None
    correction = settings.objective.correction if tis else None
    return settings.model_copy(
        update={
            "rollout": settings.rollout.model_copy(update={"asynchrony": how}),
            "objective": settings.objective.model_copy(update={"correction": correction}),
        }
    )


def measure(work: Path, seed: int, steps: int, staleness: int, tis: bool) -> Row:
    """Train one arm from the prepared checkpoint of its seed."""
    prepared, layout = _prepare(work, seed), Layout(work / f"run-{seed}-{staleness}-{tis}")
    shutil.rmtree(layout.root, ignore_errors=True)
    shutil.copytree(prepared / "out", layout.out)
    settings = arm_settings(layout.root, seed, steps, staleness, tis)
    records: list[StepRecord] = []
    began = time.perf_counter()
    with assembled(settings, layout, ranked_clusters(read_prompts(layout.split("train")), layout)) as parts:
        train(parts, records.append)
    seconds = time.perf_counter() - began
    signals = [record.signals for record in records]
    shutil.rmtree(layout.root)
    return {
        "seed": seed,
        "steps": steps,
        "staleness": staleness,
        "tis": tis,
        "seconds": seconds,
        "accuracy": [one["accuracy"] for one in signals],
        "dev": [one["dev_pass_at_1"] for one in signals if "dev_pass_at_1" in one],
        "drift_k3": fmean(one.get("drift_k3", one.get("mismatch_k3", 0.0)) for one in signals),
        "ess": min(one.get("ess", 1.0) for one in signals),
        "tis_truncated": fmean(one.get("tis_truncated", 0.0) for one in signals),
    }


def table(rows: Sequence[Row]) -> str:
    """Markdown, one line an arm; means over seeds."""
    lines = [
        "| steps old | TIS | seeds | dev pass@1 every 5 steps | accuracy, last 5 | KL sampler, learner | ESS | s |",
        "|---" * 8 + "|",
    ]
    for staleness, tis in sorted({(row["staleness"], not row["tis"]) for row in rows}):
        mine = [row for row in rows if (row["staleness"], not row["tis"]) == (staleness, tis)]
        cells = [
            " ".join(f"{fmean(values):.0%}" for values in zip(*(row["dev"] for row in mine), strict=True)),
            f"{fmean(fmean(row['accuracy'][-5:]) for row in mine):.0%}",
            f"{fmean(row['drift_k3'] for row in mine):.1e}",
            f"{min(row['ess'] for row in mine):.2f}",
            f"{fmean(row['seconds'] for row in mine):.0f}",
        ]
        lines.append(f"| {staleness} | {'no' if tis else 'yes'} | {len(mine)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
