"""What every recipe does to the demo task: same SFT checkpoint, same number of steps, several seeds.

    python -m tests.benchmarks.recipes --out recipes.jsonl [--recipes dapo gspo] [--seeds 0 1 2] [--steps 20] [--jobs 2]

A measurement is one line of the output file; those that are there already are not repeated. Ends with the table.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from components.config import Settings
from components.evaluation.answering import answer_suites
from components.evaluation.cache import Cache
from components.evaluation.suites import held_out
from components.evaluation.summary import summarise
from components.files import read_json, write_json
from components.layout import Layout
from components.progress import progress
from tests.benchmarks.lines import rows_of
from tests.benchmarks.running import QUIET
from tests.benchmarks.runs import add_rows, parser_of
from tests.recipes import OWN_DATA, RECIPES, base_of, prepare, recipe_settings, train

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then print the table."""
    options = _parser().parse_args(arguments)
    os.environ.update(QUIET)
    done = {(row["recipe"], row["seed"], row["steps"]) for row in rows_of(options.out)}
    wanted = [(r, s) for s in options.seeds for r in options.recipes if (r, s, options.steps) not in done]
    first = {(base_of(r) if r not in OWN_DATA else r, s): (_prepare, options.work, r, s) for r, s in wanted}
    runs = [(measure, options.work, recipe, seed, options.steps) for recipe, seed in wanted]
    add_rows(options.out, options.jobs, runs, first.values())
    print(table([row for row in rows_of(options.out) if row["steps"] == options.steps]))


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("recipes", __doc__)
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=RECIPES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=20)
    return parser


def _changes(seed: int, steps: int) -> Row:
    return {
        "seed": seed,
        "triage": {"override": "every recipe is measured from the same checkpoint"},
        "health": {"enabled": False},
        "train": {"steps": steps, "eval_every": steps, "eval_prompts": 16, "eval_samples": 2, "checkpoint_every": 1000},
        "evaluation": {"prompts": 200, "samples": 4},
    }


def _prepare(work: Path, recipe: str, seed: int) -> Path:
    """A folder with everything before training, and the accuracy of its SFT checkpoint in `before.json`."""
    folder = prepare(work / f"seed-{seed}", recipe, {"seed": seed})
    if not (folder / "before.json").exists():
        own = recipe if recipe in OWN_DATA else None
        settings = recipe_settings(folder, own, base_of(recipe), _changes(seed, 20))
        write_json(folder / "before.json", accuracy(settings, Layout(folder), "sft_checkpoint"))
    return folder


def accuracy(settings: Settings, layout: Layout, checkpoint: str) -> Row:
    """Sampled and greedy accuracy of one checkpoint on the same held-out prompts."""
    asked, path = held_out(settings, layout), getattr(layout, checkpoint)
    with progress("evaluate", len(asked.prompts)) as bar:
        ((answered,),) = answer_suites(
            [path], [asked], consistency=layout.consistency, logs=layout.logs, cache=Cache(None), bar=bar
        )
    figures = summarise([one.result for one in answered], settings.evaluation.samples)
    return {"pass_at_1": figures["pass_at_1"], "greedy": figures["greedy"]}


def measure(work: Path, recipe: str, seed: int, steps: int) -> Row:
    """Train and evaluate one recipe from the prepared checkpoint of its base and seed."""
    began = time.perf_counter()
    prepared = _prepare(work, recipe, seed)
    try:
        settings, layout = train(prepared, work / f"run-{recipe}-{seed}", recipe, _changes(seed, steps))
    except Exception as error:  # one recipe that fails does not end the measurement of the others; the table says so
        return {"recipe": recipe, "seed": seed, "steps": steps, "failed": f"{type(error).__name__}: {error}"[:300]}
    seconds = time.perf_counter() - began
    before, after = read_json(prepared / "before.json"), accuracy(settings, layout, "train_checkpoint")
    signals = read_json(layout.train_metrics)["final"]
    return {
        "recipe": recipe,
        "seed": seed,
        "steps": steps,
        "seconds": seconds,
        "before": before["pass_at_1"],
        "after": after["pass_at_1"],
        "greedy": after["greedy"],
        "entropy": signals.get("entropy"),
        "clipped": signals.get("clip_low", 0.0) + signals.get("clip_high", 0.0),
    }


def table(rows: Sequence[Row]) -> str:
    """Markdown: mean and standard deviation over seeds."""
    lines = ["| recipe | seeds | pass@1 before | after | gain | greedy | entropy | s |", "|---" * 8 + "|"]
    for recipe in sorted({row["recipe"] for row in rows}):
        mine = [row for row in rows if row["recipe"] == recipe]
        if failed := [row for row in mine if "failed" in row]:
            lines.append(f"| {recipe} | failed: {failed[0]['failed'].splitlines()[0]} |")
            continue
        cells = [
            _spread([100 * row["before"] for row in mine]),
            _spread([100 * row["after"] for row in mine]),
            _spread([100 * (row["after"] - row["before"]) for row in mine]),
            _spread([100 * row["greedy"] for row in mine]),
            _spread([row["entropy"] for row in mine if row["entropy"] is not None], digits=3),
            f"{fmean(row['seconds'] for row in mine):.0f}",
        ]
        lines.append(f"| {recipe} | {len(mine)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spread(values: Sequence[float], digits: int = 1) -> str:
    if not values:
        return "-"
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}"


if __name__ == "__main__":
    main()
