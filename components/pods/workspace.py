"""A stage's files on the way to its pods and back, as whoever submits it moves them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from components.config import Settings
from components.config.documents import foreign
from components.config.inputs import input_sections
from components.directories import write_directory
from components.errors import InputError
from components.files import os_errors, read_text, write_bytes
from components.layout import Layout
from components.pods.code import COPY, code_folder, extensions
from components.pods.depot import Depot
from components.pods.fetch import INPUT
from components.pods.parcels import Sender, clear, fetch, parcels, read
from components.status import StageStatus, read_status, status_path

CODE = "components"
PLAIN = ("configs", "constraints.txt", "dvc.yaml")
"""What every stage is given, besides code and settings."""
WRITTEN = ("outs", "metrics", "plots")
"""In `dvc.yaml`, what a stage writes."""


def put_input(workspace: Path, depot: Depot, stage: str, settings: Settings, config: Path) -> None:
    """Put what the pods need of a workspace: its code and that of ``kind: python`` settings (`components.pods.code`),
    ``config`` (the file that the pods are given), the outputs of other stages that this one reads, and the files that
    the settings name. An answer that is there goes: it is that of a submission before, and must not be taken for this
    one's.

    Raises:
        InputError: one of them is missing, or lies outside of the workspace.
        Unavailable: the server does not answer.
    """
    code = code_folder(workspace)
    plain = [code if code == COPY else Path(CODE), *extensions(workspace, settings), *map(Path, PLAIN)]
    files: dict[str, Path] = {}
    for name in (*plain, config, *inputs(workspace, stage), *_named(workspace, stage, settings)):
        for path in _below(_inside(workspace, name)):
            files[path.relative_to(workspace).as_posix()] = path
    clear(depot.bucket("output"))
    Sender(depot.bucket("input")).put(INPUT, files, {"stage": stage})


def take_output(workspace: Path, depot: Depot, stage: str) -> StageStatus | None:
    """Bring what the stage wrote into the workspace, each output at once and whole, and how it ended; None where there
    is nothing.

    Raises:
        InputError: a file is gone or damaged, or cannot be written here.
        Unavailable: the server does not answer.
    """
    bucket, layout = depot.bucket("output"), Layout(workspace)
    found = parcels(bucket)
    if not found:
        return None
    parcel = read(bucket, found[-1])  # that of the last attempt
    status = status_path(layout, stage).relative_to(workspace)
    known = [*map(Path, declared(workspace, stage, *WRITTEN)), status]
    if strange := [path for path in parcel.files if not any(Path(path).is_relative_to(one) for one in known)]:
        how = "find out who wrote it"
        raise InputError(f"not an output of stage {stage}: {strange[0]!r}", where=bucket.where(found[-1]), how=how)
    incoming = layout.state / "incoming" / stage
    write_directory(incoming, partial(fetch, bucket, parcel))  # in the place of what an interrupted call has left
    for path in known:
        if any(Path(file).is_relative_to(path) for file in parcel.files):
            _replace(workspace / path, incoming / path)
    with os_errors("remove", incoming):
        shutil.rmtree(incoming)
    return read_status(layout, stage)


def outputs(workspace: Path, stage: str) -> Iterator[Path]:
    """The files that a stage wrote."""
    for path in declared(workspace, stage, *WRITTEN):
        yield from _below(_inside(workspace, Path(path)))


def inputs(workspace: Path, stage: str) -> list[Path]:
    """The outputs of other stages that it reads."""
    return [path for path in map(Path, declared(workspace, stage, "deps")) if path.is_relative_to(Layout().out)]


def declared(workspace: Path, stage: str, *kinds: str) -> list[str]:
    """What `dvc.yaml` names for a stage: files and folders, or with ``params`` settings.

    Raises:
        InputError: it does not know the stage.
    """
    path = workspace / "dvc.yaml"
    stages: dict[str, Any] = (foreign(read_text(path), path) or {}).get("stages", {})
    if stage not in stages:
        raise InputError(f"no stage {stage!r}", where=path, how=f"use one of: {', '.join(stages)}")
    entries = [entry for kind in kinds for entry in stages[stage].get(kind, [])]
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def _named(workspace: Path, stage: str, settings: Settings) -> list[Path]:
    """Files and folders that the settings name, of those settings that the stage depends on."""
    whole = settings.model_dump(mode="json")
    tree = Settings().model_dump(mode="json")
    for name in declared(workspace, stage, "params"):
        *above, last = name.split(".")
        given, own = whole, tree
        for key in above:
            given, own = given[key], own[key]
        own[last] = given[last]
    return [Path(section["path"]) for section in input_sections(tree)]


def _inside(workspace: Path, name: Path) -> Path:
    path = workspace / name
    if not path.exists():
        raise InputError("not there, and the stage needs it", where=path, how="run the stages before it first")
    if name.is_absolute() or ".." in name.parts:
        how = "copy it into the workspace and name it by its relative path, or use a shared volume"
        raise InputError("it lies outside of the run's workspace, where no pod could find it", where=name, how=how)
    return path


def _below(path: Path) -> Iterator[Path]:
    """A file, or the files of a folder but for what Python leaves there."""
    if path.is_file():
        yield path
        return
    for one in sorted(path.rglob("*")):
        if one.is_symlink():
            raise InputError(
                "a symbolic link, which no pod could follow", where=one, how="replace it by the file itself"
            )
        if one.is_file() and "__pycache__" not in one.parts:
            yield one


def _replace(target: Path, source: Path) -> None:
    """Give the place of a file or of a folder to what has arrived."""
    if source.is_dir():
        write_directory(target, partial(shutil.copytree, source, dirs_exist_ok=True))
    else:
        write_bytes(target, source.read_bytes())
