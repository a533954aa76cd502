"""A small real training on a cluster: its workspace, prepared once, and what came of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from components.config import Settings, dump, load
from components.files import sha256_tree
from components.launch import Job
from components.layout import Layout
from components.resume import NAME
from tests.cluster.conftest import Place
from tests.cluster.runs import SMALL_PODS, on
from tests.integration.small import NO_LIMITS, SMALL
from tests.kubernetes.profiles import CPU, ROOT

CODE = ("components", "configs", "constraints.txt", "dvc.yaml")
BEFORE = ("data", "audit", "sft", "admission", "triage", "clusters")
"""The stages before training."""
ALONE = ["rollout.engine={kind: torch}", "learner.kind=torch", "learner.ranks.processes=2"]
TWO_NODES = ["rollout.engine={kind: torch}", "learner.kind=deepspeed", "learner.ranks.processes=2"]
LIMITS = [
    "launch.kubernetes.learner.cpu=500m",
    *(f"launch.kubernetes.{role}.memory=2Gi" for role in ("learner", "rollout")),
]


def settings(place: Place, image: str, shared: Path, overrides: Sequence[str]) -> Settings:
    """Those of a small training at a place."""
    whole = [*SMALL, *NO_LIMITS, *SMALL_PODS, *LIMITS, *on(place, image, path=str(shared)), *overrides]
    return load(ROOT / CPU, whole)


def prepare(folder: Path, chosen: Settings) -> Path:
    """A workspace whose stages before training are done."""
    folder.mkdir()
    for name in CODE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    here = chosen.model_copy(update={"launch": chosen.launch.model_copy(update={"kind": "inline"})})
    (folder / "params.yaml").write_text(dump(here), "utf-8")
    for stage in BEFORE:
        run_here(folder, stage)
    return folder


def run_here(workspace: Path, stage: str) -> None:
    """A stage in a process of this machine."""
    environment = {**os.environ, "PYTHONPATH": str(workspace)}
    command = [sys.executable, "-m", "components", stage, "--config", "params.yaml"]
    subprocess.run(command, cwd=workspace, env=environment, check=True, capture_output=True)


def copy(prepared: Path, name: str) -> Path:
    """A workspace of its own, whose files the pods' user may write to as well."""
    target = prepared.parent / name
    shutil.copytree(prepared, target)
    open_to_all(target)
    return target


def open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


def train(workspace: Path, chosen: Settings) -> Job:
    return Job("train", chosen, workspace)


def trained(workspace: Path) -> str:
    """Digest of all that training wrote."""
    return sha256_tree(Layout(workspace).train)


def checkpoints(workspace: Path) -> list[int]:
    """Steps of the checkpoints that are whole."""
    folders = (Layout(workspace).state / "train").glob("step-*")
    return sorted(int(match[1]) for folder in folders if (match := NAME.fullmatch(folder.name)))
