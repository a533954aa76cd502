"""What executed stages took: `.state/history.jsonl` of the project, a line each.

Estimates live on it and nothing else does. A line that cannot be read, such as one that a crash cut off, is left out.

A line holds digests of what the stage depends on. `dvc.yaml` lists the settings, code and earlier outputs that each
stage reads. An earlier output is identified by the digest of what it depends on itself, so that stages that have not
run have digests too.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from components.config.documents import foreign
from components.files import append_line, os_errors, sha256_json
from components.registry.clock import stamp, utc_now
from flows.budget.spending import seconds_of
from flows.budget.work import gpus_of, located, machinery, work_of
from flows.host.dvc import declared
from flows.host.git import git
from flows.run.workspace import Workspace

Stages = Mapping[str, Mapping[str, Any]]
DIGITS = 16
"""Of a digest."""


def settings_keys(workspace: Workspace) -> dict[str, str]:
    """Stage -> digest of the settings that it reads."""
    stages, tree = _pipeline(workspace.project, workspace.snapshot.commit), workspace.settings.model_dump(mode="json")
    return {stage: sha256_json(_params(tree, entry))[:DIGITS] for stage, entry in stages.items()}


def result_keys(workspace: Workspace) -> dict[str, str]:
    """Stage -> digest of settings, code and, through the stages before it, of all that its result depends on."""
    project, commit, tree = workspace.project, workspace.snapshot.commit, workspace.settings.model_dump(mode="json")
    stages, code = _pipeline(project, commit), _code(project, commit)
    keys: dict[str, str] = {}
    for stage, entry in stages.items():
        deps = {path: code.get(path) or keys[_writer(stages, path)] for path in declared(entry, "deps")}
        keys[stage] = sha256_json({"cmd": entry["cmd"], "params": _params(tree, entry), "deps": deps})[:DIGITS]
    return keys


@lru_cache(maxsize=8)
def _pipeline(project: Path, commit: str) -> Stages:
    """The stages of `dvc.yaml` at a commit, which never changes."""
    stages: Stages = foreign(git(project, "show", f"{commit}:dvc.yaml"), "dvc.yaml")["stages"]
    return stages


@lru_cache(maxsize=8)
def _code(project: Path, commit: str) -> Mapping[str, str]:
    """Path -> Git's own digest of every file or folder of code that a stage depends on."""
    paths = {path for entry in _pipeline(project, commit).values() for path in declared(entry, "deps")}
    code = sorted(path for path in paths if not path.startswith("out/"))
    objects = git(project, "rev-parse", *(f"{commit}:{path}" for path in code)).splitlines() if code else []
    return dict(zip(code, objects, strict=True))


def _writer(stages: Stages, path: str) -> str:
    """The stage that writes ``path``, or a folder around it."""
    return next(
        stage
        for stage, entry in stages.items()
        for out in declared(entry, "outs", "metrics", "plots")
        if f"{path}/".startswith(f"{out}/")
    )


def _params(tree: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(tree, name) for name in entry["params"]}


def _value(tree: Any, dotted: str) -> Any:
    """A setting; None where recorded code names one that is no more."""
    for key in dotted.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


READ = 2**22
"""Bytes at the end of the file that are read: some ten thousand lines."""


@dataclass(frozen=True, slots=True)
class Executed:
    """One execution of a stage. ``settings`` and ``result`` are those of `settings_keys` and `result_keys`; ``amount``,
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
            row = Executed(**json.loads(line))
            if math.isfinite(row.seconds) and row.seconds >= 0 and row.amount >= 0:
                rows.append(row)
    return rows
