"""What the result of a stage depends on, as digests, without executing anything.

`dvc.yaml` lists the settings, code and earlier outputs that each stage reads. An earlier output is identified by the
digest of what it depends on itself, so that stages that have not run have digests too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from components.config.documents import foreign
from components.files import sha256_json
from flows.host.dvc import declared
from flows.host.git import git
from flows.run.workspace import Workspace

Stages = Mapping[str, Mapping[str, Any]]


def settings_keys(workspace: Workspace) -> dict[str, str]:
    """Stage -> digest of the settings that it reads."""
    stages, tree = _pipeline(workspace.project, workspace.snapshot.commit), _tree(workspace)
    return {stage: _digest(_params(tree, entry)) for stage, entry in stages.items()}


def result_keys(workspace: Workspace) -> dict[str, str]:
    """Stage -> digest of settings, code and, through the stages before it, of all that its result depends on."""
    project, commit, tree = workspace.project, workspace.snapshot.commit, _tree(workspace)
    stages, code = _pipeline(project, commit), _code(project, commit)
    keys: dict[str, str] = {}
    for stage, entry in stages.items():
        deps = {path: code.get(path) or keys[_writer(stages, path)] for path in declared(entry, "deps")}
        keys[stage] = _digest({"cmd": entry["cmd"], "params": _params(tree, entry), "deps": deps})
    return keys


def _tree(workspace: Workspace) -> dict[str, Any]:
    return workspace.settings.model_dump(mode="json")


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


def _digest(value: Any) -> str:
    return sha256_json(value)[:16]
