"""What a run has taken so far, all attempts together, and the limit on it.

The account is `.state/spent.jsonl` of the run's workspace, a line an attempt at a stage. An attempt that was killed
could not write its line; its beginning is on record, and the last sign of life in its log ends it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from components.errors import EvenkeelError
from components.files import append_line, cut_torn_line, os_errors, read_json, read_text, write_json
from components.layout import Layout
from flows.budget.work import gpus_of
from flows.run.workspace import Workspace

HOUR = 3600.0
_UNITS = {"hours": "hours", "gpu_hours": "GPU-hours"}


class BudgetSpent(EvenkeelError):
    """The run has reached a limit and was stopped; it can be continued with a higher one (exit code 2).

    Not 3, which is a result about a checkpoint: this run has none yet.
    """

    state_name = "BudgetSpent"


@dataclass(slots=True)
class Attempt:
    """One attempt at a stage: the seconds that it may take, and whether it succeeded."""

    left: float | None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """Hours of work."""

    hours: float
    gpu_hours: float


def spent(layout: Layout) -> Spent:
    """What all attempts of the run in this workspace have taken together."""
    rows = _rows(layout)
    seconds = sum(float(row["seconds"]) for row in rows)
    return Spent(seconds / HOUR, sum(row["seconds"] * row["gpus"] for row in rows) / HOUR)


def seconds_of(workspace: Workspace, stage: str, *, unfinished: bool = False) -> float:
    """What the latest execution of a stage took, attempts that were broken off included; or what an ``unfinished`` one
    has taken so far.
    """
    total, found = 0.0, False
    for row in reversed(_rows(workspace.layout)):
        if row["stage"] == stage:
            if row["whole"] and (found or unfinished):
                break
            total, found = total + row["seconds"], True
    return total


@contextmanager
def attempt(workspace: Workspace, stage: str) -> Iterator[Attempt]:
    """Keep account of an attempt at a stage.

    Raises:
        BudgetSpent: the limit was reached before it or in the middle of it.
    """
    close_killed_attempt(workspace)
    gpus, limit = gpus_of(workspace.settings, stage), _left(workspace, stage)
    if limit is not None and limit <= 0:
        raise _refusal(workspace, f"stage {stage} was not begun")
    began, current = time.monotonic(), Attempt(limit)
    identifier = secrets.token_hex(8)
    write_json(_open_attempt(workspace), {"stage": stage, "began": time.time(), "gpus": gpus, "attempt": identifier})
    try:
        try:
            yield current
        finally:
            _close(workspace, stage, time.monotonic() - began, gpus, current.whole, identifier)
    except TimeoutExpired as error:
        raise _refusal(workspace, f"stage {stage} was stopped") from error


def close_killed_attempt(workspace: Workspace) -> None:
    """Enter an attempt whose process was killed."""
    path = _open_attempt(workspace)
    if not path.exists():
        return
    found = read_json(path)
    identifier = str(found.get("attempt", ""))
    if identifier and any(row.get("attempt") == identifier for row in _rows(workspace.layout)):  # killed after that
        path.unlink(missing_ok=True)
        return
    log = workspace.log(str(found["stage"]))
    ended = max((file.stat().st_mtime for file in (log, workspace.progress) if file.exists()), default=found["began"])
    _close(workspace, str(found["stage"]), max(0.0, ended - found["began"]), int(found["gpus"]), False, identifier)


def _close(workspace: Workspace, stage: str, seconds: float, gpus: int, whole: bool, identifier: str) -> None:
    row = {"stage": stage, "seconds": round(seconds, 1), "gpus": gpus, "whole": whole, "attempt": identifier}
    cut_torn_line(_account(workspace.layout))
    append_line(_account(workspace.layout), row)
    with os_errors("remove", _open_attempt(workspace)):
        _open_attempt(workspace).unlink(missing_ok=True)


def _left(workspace: Workspace, stage: str) -> float | None:
    """Seconds that the stage may take; None without a limit."""
    budget, gpus = workspace.settings.budget, gpus_of(workspace.settings, stage)
    taken = spent(workspace.layout)
    limits = []
    if budget.hours is not None:
        limits.append((budget.hours - taken.hours) * HOUR)
    if budget.gpu_hours is not None and gpus:
        limits.append((budget.gpu_hours - taken.gpu_hours) * HOUR / gpus)
    return min(limits, default=None)


def _refusal(workspace: Workspace, what: str) -> BudgetSpent:
    budget, taken = workspace.settings.budget, spent(workspace.layout)
    limits = {"hours": (taken.hours, budget.hours), "gpu_hours": (taken.gpu_hours, budget.gpu_hours)}
    used = {name: (had, allowed) for name, (had, allowed) in limits.items() if allowed is not None}
    figures = " and ".join(f"{had:.3g} of {allowed:g} {_UNITS[name]}" for name, (had, allowed) in used.items())
    reached = max(used, key=lambda name: used[name][0] / used[name][1])
    how = f"raise it, and it goes on where it was: evenkeel run --resume {workspace.run_id} --set budget.{reached}=..."
    return BudgetSpent(f"the budget is spent: {figures}; {what}", where=workspace.root, how=how)


def _account(layout: Layout) -> Path:
    return layout.state / "spent.jsonl"


def _open_attempt(workspace: Workspace) -> Path:
    return workspace.layout.state / "attempt.json"


def _rows(layout: Layout) -> list[dict[str, Any]]:
    """Without a line that a crash has left torn."""
    path = _account(layout)
    if not path.exists():
        return []
    whole = read_text(path).rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines() if line.strip()]
