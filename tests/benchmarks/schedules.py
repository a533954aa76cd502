"""How many completions each schedule needs until the demo's policy reaches an accuracy on held-out prompts.

    python -m tests.benchmarks.schedules --out schedules.jsonl [--seeds 0 1 2 3 4] [--budget 16000] [--jobs 2]

All schedules of a seed start from the same SFT checkpoint and differ in nothing but the schedule. Every completion that
is sampled for training counts, refills included; those for the held-out measurement do not. A run ends when the largest
target is reached or the budget is spent. A measurement is one line of the output file; those that are there already are
not repeated. Ends with the table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from components.config import Settings, load
from components.data.prompts import read_prompts
from components.files import append_line, read_jsonl, write_text
from components.layout import Layout
from components.scheduling.ranked import ranked_clusters
from components.training.assembly import assembled
from components.training.loop import train
from components.types import StepRecord
from tests.recipes import CONFIGS, prepare

Row = dict[str, Any]
Curve = Sequence[tuple[float, float]]
"""Completions sampled so far, and held-out accuracy at that point."""

UNIFORM = {"kind": "uniform"}
PLAIN: Row = {"dynamic_sampling": None}
FILL = {"dynamic_sampling": {"max_attempts": 4}}
SIZED = {"dynamic_sampling": {"max_attempts": 4, "sized": True}}
STAGES = {"two_stage": {"first": 4}}
METHODS: dict[str, tuple[Row, Row]] = {
    "uniform": (UNIFORM, PLAIN),
    "dynamic": (UNIFORM, FILL),
    "sized": (UNIFORM, SIZED),
    "two_stage": (UNIFORM, PLAIN | STAGES),
    "difficulty_pools": ({"kind": "difficulty_pools"}, FILL),
    "ads": ({"kind": "ads", "window": 8, "active": 4, "move": "outside", "min_prob": 0.5}, FILL),
    "greso": ({"kind": "greso"}, SIZED),
    "mopps": ({"kind": "mopps"}, PLAIN),
    "forecast": ({"kind": "forecast"}, PLAIN),
    "forecast_two_stage": ({"kind": "forecast"}, PLAIN | STAGES),
    "forecast_filled": ({"kind": "forecast"}, SIZED | STAGES),
}
"""``schedule`` and ``rollout`` of each. The first is what the others are compared with; ads is the demo's own."""
TARGETS = (0.5, 0.6, 0.7)
RESAMPLES = 10_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then print the table."""
    options = _parser().parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    changes = yaml.safe_load(options.changes)
    done = {(row["schedule"], row["seed"], row["budget"], row["target"]) for row in _rows(options.out)}
    key = (options.budget, max(options.targets))
    wanted = [(name, seed) for seed in options.seeds for name in options.schedules if (name, seed, *key) not in done]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        # First, so that no two runs of a seed prepare its checkpoint at the same time.
        seeds = sorted({seed for _, seed in wanted})
        for ready in [pool.submit(_prepare, options.work, seed, changes) for seed in seeds]:
            ready.result()
        futures = [pool.submit(measure, options.work, name, seed, *key, changes) for name, seed in wanted]
        for future in as_completed(futures):
            append_line(options.out, future.result())
    rows = [row for row in _rows(options.out) if (row["budget"], row["target"]) == key and row["seed"] in options.seeds]
    print(table(rows, options.targets, options.budget))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-schedules")
    parser.add_argument("--schedules", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--targets", nargs="+", type=float, default=list(TARGETS), help="held-out pass@1 to reach")
    parser.add_argument("--budget", type=int, default=16_000, help="completions after which a run is given up")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--changes", default="{}", help="settings for all, as YAML; with a --work of its own")
    return parser


def _rows(path: Path) -> list[Row]:
    return list(read_jsonl(path)) if path.exists() else []


def _prepare(work: Path, seed: int, changes: Row) -> Path:
    """A folder with everything before training."""
    return prepare(work / f"seed-{seed}", "dapo", {**changes, "seed": seed})


class Enough(Exception):
    """The target is reached, or the budget spent."""


def measure(work: Path, schedule: str, seed: int, budget: int, target: float, changes: Row) -> Row:
    """Train with one schedule from the prepared checkpoint of its seed, with an eye on the held-out accuracy."""
    prepared, layout = _prepare(work, seed, changes), Layout(work / f"run-{schedule}-{seed}")
    shutil.rmtree(layout.root, ignore_errors=True)
    shutil.copytree(prepared / "out", layout.out)
    settings = run_settings(layout.root, METHODS[schedule], seed, changes)
    curve: list[tuple[float, float]] = []
    sampled, began = 0.0, time.perf_counter()

    def watch(record: StepRecord) -> None:
        nonlocal sampled
        if "dev_pass_at_1" in record.signals:  # measured before the step
            curve.append((sampled, record.signals["dev_pass_at_1"]))
        sampled += record.signals["completions_sampled"]
        if sampled >= budget or reached_at(curve, target) is not None:
            raise Enough

    row = {"schedule": schedule, "seed": seed, "budget": budget, "target": target}
    try:
        run(settings, layout, watch)
    except Enough:
        pass
    except Exception as error:  # one run that fails does not end the measurement of the others; the table says so
        return {**row, "failed": f"{type(error).__name__}: {error}"[:300]}
    return {**row, "curve": curve, "sampled": sampled, "seconds": time.perf_counter() - began}


def run_settings(folder: Path, method: tuple[Row, Row], seed: int, changes: Row) -> Settings:
    """The demo with one schedule: measured every second step, stopped by nothing but `watch`."""
    below, top = folder / "below.yaml", folder / "config.yaml"
    write_text(below, yaml.safe_dump({"extends": [str(CONFIGS / "demo.yaml")], **changes}))
    train = {"steps": 1000, "eval_every": 2, "eval_prompts": 128, "eval_samples": 4, "checkpoint_every": 10_000}
    above = {
        "seed": seed,
        "schedule": method[0],
        "rollout": method[1],
        "health": {"enabled": False},
        "train": {**train, "keep_pairs": 0},
    }
    write_text(top, yaml.safe_dump({"extends": [str(below)], **above}))
    return load(top)


def run(settings: Settings, layout: Layout, watch: Any) -> None:
    """Stage `train` without triage, health rules and outputs."""
    clusters = ranked_clusters(read_prompts(layout.split("train")), layout)
    with assembled(settings, layout, clusters) as parts:
        train(parts, watch)


def reached_at(curve: Curve, target: float) -> float | None:
    """Completions at which the mean of two successive measurements crosses ``target``; None where it does not.

    Between measurements the mean is taken to be linear. Two of them, so that one lucky measurement is not enough.
    """
    pairs = list(pairwise(curve))
    smooth = [((a + b) / 2, (x + y) / 2) for (a, x), (b, y) in pairs]
    for place, (rollouts, accuracy) in enumerate(smooth):
        if accuracy >= target:
            if place == 0:
                return rollouts
            before, low = smooth[place - 1]
            return before + (rollouts - before) * (target - low) / (accuracy - low)
    return None


def ratio(mine: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """Sum of ``mine`` over sum of ``base``, paired by seed, with its 95 % bootstrap interval over seeds.

    Five seeds are few: percentile intervals of so few pairs are too narrow rather than too wide.
    """
    pairs = np.array([mine, base], dtype=float)
    chosen = np.random.default_rng(0).integers(pairs.shape[1], size=(RESAMPLES, pairs.shape[1]))
    sums = pairs[:, chosen].sum(-1)
    low, high = np.percentile(sums[0] / sums[1], [2.5, 97.5])
    return float(pairs[0].sum() / pairs[1].sum()), float(low), float(high)


def table(rows: Sequence[Row], targets: Sequence[float], budget: int) -> str:
    """Markdown, one line a target and schedule. A run that never reached the target counts with the budget."""
    whole = [row for row in rows if "failed" not in row]
    lines = [
        f"{row['schedule']}, seed {row['seed']} failed: {row['failed'].splitlines()[0]}"
        for row in rows
        if "failed" in row
    ]
    lines += [
        "| held-out pass@1 | schedule | seeds | not reached | completions | of uniform's | 95 % | s a run |",
        "|---" * 8 + "|",
    ]
    for target in targets:
        needed = {name: _needed(whole, name, target, budget) for name in METHODS}
        for name, by_seed in needed.items():
            if not by_seed:
                continue
            seeds = sorted(by_seed.keys() & needed["uniform"].keys())
            cells = ["-", "-"]
            if name != "uniform" and seeds:
                found, low, high = ratio(*([arm[seed][0] for seed in seeds] for arm in (by_seed, needed["uniform"])))
                cells = [f"{found:.0%}", f"{low:.0%} to {high:.0%}"]
            counts, misses, seconds = zip(*by_seed.values(), strict=True)
            cells = [str(len(counts)), str(sum(misses)), f"{np.mean(counts):,.0f}", *cells, f"{np.mean(seconds):.0f}"]
            lines.append(f"| {target:.0%} | {name} | " + " | ".join(cells) + " |")
    if any(
        miss for target in targets for name in METHODS for _, miss, _ in _needed(whole, name, target, budget).values()
    ):
        lines.append(f"\nA run that did not reach the target counts with the whole budget of {budget:,} completions.")
    return "\n".join(lines)


def _needed(rows: Sequence[Row], name: str, target: float, budget: int) -> Mapping[int, tuple[float, bool, float]]:
    """Seed -> completions until the target, whether they are the budget because it was missed, and seconds."""
    mine = {row["seed"]: row for row in rows if row["schedule"] == name}
    found = {seed: reached_at(row["curve"], target) for seed, row in mine.items()}
    return {
        seed: (budget if at is None else min(at, budget), at is None, mine[seed]["seconds"])
        for seed, at in found.items()
    }


if __name__ == "__main__":
    main()
