"""What executed stages took: `.state/history.jsonl` of the project, a line each.

Estimates live on it and nothing else does. A line that cannot be read, such as one that a crash cut off, is left out.
"""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from components.files import append_line, os_errors
from components.registry.clock import stamp, utc_now
from flows.budget.identity import result_keys, settings_keys
from flows.budget.spending import seconds_of
from flows.budget.work import gpus_of, located, machinery, work_of
from flows.run.workspace import Workspace

READ = 2**22
"""Bytes at the end of the file that are read: some ten thousand lines."""


@dataclass(frozen=True, slots=True)
class Executed:
    """One execution of a stage. ``settings`` and ``result`` are the digests of `flows.budget.identity`; ``amount``,
    ``unit`` and ``start`` are its `Work`.

    One that was not ``executed`` was found in the cache: its seconds say nothing, its result is known all the same.
    """

    run: str
    stage: str
    seconds: float
    gpus: int
    machinery: str
    amount: float
    unit: str
    settings: str
    result: str
    at: str
    executed: bool = True
    start: float = 0.0


def path_of(project: Path) -> Path:
    """Where the history of a project is."""
    return project / ".state" / "history.jsonl"


def record_execution(workspace: Workspace, stage: str, *, executed: bool) -> None:
    """Enter a stage that was brought up to date just now; one from the cache only where its result was unknown."""
    result = result_keys(workspace)[stage]
    if not executed and any(row.result == result for row in history(workspace.project)):
        return
    work = work_of(located(workspace), stage)
    row = Executed(
        run=workspace.run_id,
        stage=stage,
        seconds=round(seconds_of(workspace, stage), 1),
        gpus=gpus_of(workspace.settings, stage),
        machinery=machinery(workspace.settings, stage),
        amount=work.amount,
        unit=work.unit,
        settings=settings_keys(workspace)[stage],
        result=result,
        at=stamp(utc_now()),
        executed=executed,
        start=work.start,
    )
    append_line(path_of(workspace.project), asdict(row))


def history(project: Path) -> list[Executed]:
    """What is remembered, oldest first."""
    path = path_of(project)
    if not path.exists():
        return []
    with os_errors("read", path), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - READ))
        lines = file.read().splitlines()
    rows: list[Executed] = []
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):
            rows.append(_checked(json.loads(line)))
    return rows


def _checked(row: dict[str, Any]) -> Executed:
    executed = Executed(**row)
    if not (math.isfinite(executed.seconds) and executed.seconds >= 0 and executed.amount >= 0):
        raise ValueError("no execution of a stage")
    return executed
