"""What the result of a stage depends on, as digests, without executing anything.

`dvc.yaml` says of every stage which settings, code and earlier outputs it reads. An earlier output is known by what it
depends on itself, so that there are digests for stages that have not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from components.files import dump_json, sha256_bytes
from flows.git import git
from flows.workspace import Workspace

Stages = Mapping[str, Mapping[str, Any]]


def settings_keys(workspace: Workspace) -> dict[str, str]:
    """Stage -> digest of the settings that it reads."""
    return {stage: _digest(_params(workspace, entry)) for stage, entry in _pipeline(workspace).items()}


def result_keys(workspace: Workspace) -> dict[str, str]:
    """Stage -> digest of settings, code and, through the stages before it, of all that its result depends on."""
    stages = _pipeline(workspace)
    paths = {stage: _paths(entry, "deps") for stage, entry in stages.items()}
    code = sorted({path for deps in paths.values() for path in deps if not path.startswith("out/")})
    commit = workspace.snapshot.commit
    objects = git(workspace.project, "rev-parse", *(f"{commit}:{path}" for path in code)).splitlines() if code else []
    known = dict(zip(code, objects, strict=True))
    keys: dict[str, str] = {}
    for stage, entry in stages.items():
        deps = {path: known.get(path) or keys[_writer(stages, path)] for path in paths[stage]}
        keys[stage] = _digest({"cmd": entry["cmd"], "params": _params(workspace, entry), "deps": deps})
    return keys


def _pipeline(workspace: Workspace) -> Stages:
    text = git(workspace.project, "show", f"{workspace.snapshot.commit}:dvc.yaml")
    stages: Stages = yaml.safe_load(text)["stages"]
    return stages


def _writer(stages: Stages, path: str) -> str:
    """The stage that writes ``path``, or a folder around it."""
    return next(
        stage
        for stage, entry in stages.items()
        for out in _paths(entry, "outs", "metrics", "plots")
        if f"{path}/".startswith(f"{out}/")
    )


def _paths(entry: Mapping[str, Any], *kinds: str) -> list[str]:
    rows = [row for kind in kinds for row in entry.get(kind, [])]
    return [row if isinstance(row, str) else next(iter(row)) for row in rows]


def _params(workspace: Workspace, entry: Mapping[str, Any]) -> dict[str, Any]:
    tree = workspace.settings.model_dump(mode="json")
    return {name: _value(tree, name) for name in entry["params"]}


def _value(tree: Any, dotted: str) -> Any:
    """A setting; None where recorded code names one that is no more."""
    for key in dotted.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _digest(value: Any) -> str:
    return sha256_bytes(dump_json(value).encode())[:16]
