"""The command line; `tests.benchmarks.health` says how to call it."""

from __future__ import annotations

import argparse
import os
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks.health.arms import DEFAULT_RULES, Arm, arms_of
from tests.benchmarks.health.plan import runs, sft_seed_of
from tests.benchmarks.health.store import file_of, save


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, or judge what is there."""
    options = _parser().parse_args(arguments)
    if options.command == "run":
        os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
        run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.health", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    trial = commands.add_parser("run", help="train what is not stored yet")
    trial.add_argument("--results", type=Path, required=True)
    trial.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-trial")
    trial.add_argument("--arm", choices=["plain", "respond", "both"], default="plain")
    trial.add_argument("--rules", type=Path, default=DEFAULT_RULES)
    trial.add_argument("--only", nargs="+", default=[], help="conditions; all unless given")
    trial.add_argument("--seeds", nargs="+", type=int, help="seeds; those of the plan unless given")
    trial.add_argument("--jobs", type=int, default=2)
    return parser


def missing(options: argparse.Namespace, arms: Sequence[Arm]) -> list[tuple[Arm, str, int]]:
    """What is wanted and not stored."""
    wanted = [
        (condition, seed)
        for condition, seed in runs()
        if (not options.only or condition in options.only) and (options.seeds is None or seed in options.seeds)
    ]
    return [
        (arm, condition, seed)
        for arm in arms
        for condition, seed in wanted
        if not file_of(options.results / arm.name, condition, seed).exists()
    ]


def run(options: argparse.Namespace) -> None:
    """Train what is missing, some runs at a time; each is stored as soon as it has ended."""
    todo = missing(options, arms_of(options.arm, options.rules))
    print(f"{len(todo)} runs to do", flush=True)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        # First, so that no two runs of a seed prepare its checkpoint at the same time.
        for ready in [pool.submit(_prepared, options.work, seed) for seed in sorted({sft_seed_of(*run[1:]) for run in todo})]:
            ready.result()
        futures = {pool.submit(_one, options.work, options.results, *run): run for run in todo}
        for count, future in enumerate(as_completed(futures), start=1):
            print(f"{count}/{len(todo)} {future.result()}", flush=True)


def _prepared(work: Path, sft_seed: int) -> Path:
    from tests.benchmarks.health.training import prepared  # torch, which scoring does without

    return prepared(work, sft_seed)


def _one(work: Path, results: Path, arm: Arm, condition: str, seed: int) -> str:
    """Train and store one run; a failure of the trial itself is said and does not end the others."""
    from tests.benchmarks.health.training import measure

    try:
        done = measure(work, condition, seed, arm)
    except Exception:
        return f"{arm.name} {condition}-{seed:02d} FAILED\n{traceback.format_exc()}"
    save(results / arm.name, done)
    curve = " ".join(f"{value:.2f}" for _, value in done.held_out)
    return f"{arm.name} {done.name} {done.seconds:.0f} s: {curve} {done.crashed or done.stopped_by}"


if __name__ == "__main__":
    main()
