"""Training what is not stored yet, some runs at a time."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from components.errors import InputError
from tests.benchmarks.health.arms import Arm
from tests.benchmarks.health.grounds import TOY, Ground
from tests.benchmarks.health.plan import runs, sft_seed_of
from tests.benchmarks.health.store import file_of, save

Task = tuple[Arm, str, int]
"""Arm, condition and seed of one run."""


def missing(
    results: Path, arms: Sequence[Arm], only: Sequence[str], seeds: Sequence[int] | None, ground: Ground = TOY
) -> list[Task]:
    """What is wanted and not stored; no conditions or seeds means all of the plan."""
    wanted = [(c, s) for c, s in runs(ground) if (not only or c in only) and (seeds is None or s in seeds)]
    return not_stored(results, [(arm, *run) for arm in arms for run in wanted])


def not_stored(results: Path, tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if not _file(results, task).exists()]


def run_all(todo: Sequence[Task], work: Path, results: Path, jobs: int, ground: Ground = TOY) -> None:
    """Train and store; each run is stored as soon as it has ended.

    Raises:
        InputError: Some failed, which are named; the others are stored.
    """
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    print(f"{len(todo)} runs to do", flush=True)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        # First, so that no two runs of a seed prepare its checkpoint at the same time.
        seeds = sorted({sft_seed_of(condition, seed, ground) for _, condition, seed in todo})
        for ready in [pool.submit(_prepared, work, seed, ground) for seed in seeds]:
            ready.result()
        futures = [pool.submit(_one, work, results, *task, ground) for task in todo]
        for count, future in enumerate(as_completed(futures), start=1):
            print(f"{count}/{len(todo)} {_said(future)}", flush=True)
    if failed := not_stored(results, todo):
        what = f"{len(failed)} of {len(todo)} runs failed: {', '.join(map(_name, failed))}"
        raise InputError(what, where=results, how="see above why; another call makes these only")


def _said(future: Future[str]) -> str:
    """What a run came to; a process that is gone, killed for its memory perhaps, says nothing itself."""
    error = future.exception()
    return f"FAILED {error!r}" if error else future.result()


def _name(task: Task) -> str:
    arm, condition, seed = task
    return f"{arm.name} {condition}-{seed:02d}"


def _file(results: Path, task: Task) -> Path:
    arm, condition, seed = task
    return file_of(results / arm.name, condition, seed)


def _prepared(work: Path, sft_seed: int, ground: Ground) -> Path:
    from tests.benchmarks.health.training import prepared  # torch, which scoring does without

    return prepared(work, sft_seed, ground)


def _one(work: Path, results: Path, arm: Arm, condition: str, seed: int, ground: Ground = TOY) -> str:
    """Train and store one run; a failure of the trial itself is said, and does not end the others.

    Another process may have stored it in the meantime.
    """
    task = arm, condition, seed
    if _file(results, task).exists():
        return f"{_name(task)} is there"
    from tests.benchmarks.health.training import measure

    try:
        done = measure(work, condition, seed, arm, ground)
    except Exception:
        return f"{_name(task)} FAILED\n{traceback.format_exc()}"
    save(results / arm.name, done)
    curve = " ".join(f"{value:.2f}" for _, value in done.held_out)
    return f"{arm.name} {done.name} {done.seconds:.0f} s: {curve} {done.crashed or done.stopped_by}"
