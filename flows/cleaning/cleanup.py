"""All cleanups of the janitor, in order; and that of workspaces of runs that ended long ago, whose record is on their
branch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console

from components.config import load
from components.config.reading import read_mapping
from components.errors import EvenkeelError, InputError
from components.files import read_json
from components.words import plural
from flows.cleaning import approval_requests, leftovers
from flows.cleaning.leftovers import REMOVED, CleanupAction
from flows.display.output import field, plain_table
from flows.host.branches import branch_of, head_of
from flows.host.git import RECORD, record_at
from flows.host.processes import lock_file
from flows.run.workspace import lock_of
from flows.watching.runs import RunView, all_runs


def clean(project: Path, keep_days: int, api: str | None, namespace: str = "") -> list[CleanupAction]:
    """Run all cleanups; returns the actions. This process does not become an owner of processes.

    Args:
        keep_days: days for which workspaces of ended runs are kept; 0 keeps all.
        api: address of the Prefect server with the project's own database, where there is one.
        namespace: of the cluster whose JobSets are looked at too; empty where there is none.
    """
    actions = [*leftovers.end_leftovers(project)]
    actions += leftovers.close_dead(all_runs(project), api)
    actions += leftovers.remove_partial(project, all_runs(project))
    actions += leftovers.remove_weights(all_runs(project))
    if keep_days:
        actions += remove_old(project, all_runs(project), keep_days)
    if namespace:
        actions += leftovers.remove_orphans(project, namespace)
    actions += approval_requests.settle_requests(project, api)
    return actions


def show(console: Console, actions: Sequence[CleanupAction]) -> None:
    """A row per action."""
    if not actions:
        console.print("nothing that a dead run left")
        return
    table = plain_table("what", "", "done", "why")
    for column in table.columns:
        column.overflow = "fold"
    for action in actions:
        table.add_row(action.kind, field(action.what), field(action.done), field(action.why))
    console.print(table)


MOST_DAYS = 36500
"""A hundred years: dates end somewhere."""
PARTS = ("run_id", "outcome", "digests")
"""Of the record: when the run was last looked through is no part of what came of it."""
KEPT = ("candidate", "stopped", "failed", "dead", "running", "unknown")
"""States in which the workspace is still needed: to decide, to continue, or to see what happened."""


def remove_old(project: Path, runs: Iterable[RunView], days: int) -> Iterator[CleanupAction]:
    """Remove workspaces of runs that ended more than ``days`` days ago, with nothing left to do or to decide."""
    before = datetime.now(UTC) - timedelta(days=days)
    for run in runs:
        ended = run.execution.ended if run.execution else None
        if ended is None or datetime.fromisoformat(ended) > before or run.state in KEPT:
            continue
        problem = unrecorded(project, run)
        if problem:
            yield CleanupAction("workspace", run.run_id, "kept", problem)
            continue
        try:
            if (objects := _remove(project, run)) is None:
                continue
        except EvenkeelError as error:
            yield CleanupAction("workspace", run.run_id, "kept", f"its files in the bucket stay: {error.what}")
            continue
        if objects:
            yield CleanupAction("bucket", run.run_id, "removed", f"{plural(objects, 'object')} of its pods")
        why = f"{run.state} at {ended}; its record is on {branch_of(run.run_id)}"
        yield CleanupAction("workspace", run.run_id, "removed", why)


def unrecorded(project: Path, run: RunView) -> str:
    """Why the branch does not replace the workspace; empty where it does."""
    try:
        head = head_of(project, run.run_id)
        if head is None:
            return f"there is no branch {branch_of(run.run_id)}"
        recorded = record_at(project, head)
        there = read_json(run.root / RECORD)
    except InputError as error:
        return error.what
    same = all(recorded.get(part) == there.get(part) for part in PARTS)
    return "" if same else f"its {RECORD} differs from that of {branch_of(run.run_id)}"


def _remove(project: Path, run: RunView) -> int | None:
    """Remove its files in a bucket and rename it with its lock held, then remove it, which may take long.

    Returns:
        How many objects were removed; None where the run has begun again, and nothing was.

    Raises:
        InputError, Unavailable: its settings cannot be read, or the bucket cannot be reached; the workspace stays.
    """
    renamed = run.root.with_name(f"{REMOVED}{run.run_id}")
    with lock_file(lock_of(project, run.run_id)) as lock:
        if not lock.take():
            return None
        fresh = RunView(project, run.run_id)  # as it is now
        if fresh.running or fresh.execution != run.execution or renamed.exists():
            return None
        objects = _empty_bucket(run)
        os.replace(run.root, renamed)
    shutil.rmtree(renamed, ignore_errors=True)
    return objects


def _empty_bucket(run: RunView) -> int:
    """Remove what the run's pods shared in a bucket; returns how many objects that were."""
    node: Any = read_mapping(run.root / "params.yaml")
    for name in ("launch", "kubernetes", "shared", "kind"):
        node = node.get(name) if isinstance(node, dict) else None
    if node != "s3":  # settings of an older version need not be valid any more
        return 0
    launch = load(run.root / "params.yaml").launch
    if launch.kind != "kubernetes" or launch.kubernetes is None or launch.kubernetes.shared.kind != "s3":
        return 0
    from components.launch.kubernetes.submission import depot_of
    from components.pods.depot import forget  # loads boto3, which takes a second

    depots = (depot_of(run.run_id, stage, launch.kubernetes) for stage in launch.kubernetes.stages)
    return sum(forget(depot) for depot in depots if depot)
