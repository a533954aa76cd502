"""Checkpoints of an unfinished stage: where to go on after a crash.

A folder holds ``identity.json`` and a few ``step-NNNNNN`` folders, each written whole or not at all. The identity is
what the stage depends on; a state with another identity belongs to another run and is discarded. One that differs in
the kind of device alone is refused: a GPU rounds otherwise than a CPU, so that going on would be another run under the
same name, and a GPU that is unreachable for an hour is no reason to discard what it has learned.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any, Protocol

from components.code_digest import code_digest
from components.directories import write_directory
from components.errors import InputError, Stopped
from components.files import append_line, keep_rows, read_json, sha256_json, sha256_path, write_json
from components.processes.stopping import STOPPING
from components.working import working

NAME = re.compile(r"step-([0-9]{6,})")
"""Of a checkpoint's folder. Other names, such as ``step-000010.bak``, is none."""
LOG = "log.jsonl"
"""Of `run_steps`: one row a step."""
KEEP = 2
"""Checkpoints that `ResumeState.save` keeps: the newest, and one to fall back to."""


class ResumeState:
    """The checkpoints of one stage.

    Raises:
        InputError: they were made on another kind of device.
    """

    def __init__(self, directory: Path, identity: Mapping[str, Any]) -> None:
        self.directory = directory
        marker = directory / "identity.json"
        known = read_json(marker) if marker.exists() else None
        if known == dict(identity):
            for torn in directory.glob(".step-*"):  # a kill in the middle of `save` leaves its temporary folder
                shutil.rmtree(torn)
            return
        if known is not None and self.latest():
            _refuse_other_device(known, identity, directory)
        if directory.exists():
            if newest := self.latest():
                said = f"the checkpoints in {directory}, the newest of step {newest[0]}, are of other settings or code"
                print(f"{said}: they are removed, and the stage starts over", file=sys.stderr)
            shutil.rmtree(directory)
        write_json(marker, dict(identity))

    def latest(self) -> tuple[int, Path] | None:
        """Step and folder of the newest checkpoint."""
        steps = self.steps()
        return (steps[-1], self.folder(steps[-1])) if steps else None

    def save(self, step: int, fill: Callable[[Path], None]) -> None:
        """Write the checkpoint of ``step`` whole, then drop all but the newest ones."""
        with working("writing a checkpoint"):
            write_directory(self.folder(step), fill)
        self.drop_all_but(self.steps()[-KEEP:])

    def steps(self) -> list[int]:
        """Of the checkpoints that there are, oldest first."""
        found = (NAME.fullmatch(path.name) for path in self.directory.glob("step-*"))
        return sorted(int(match[1]) for match in found if match)

    def drop_all_but(self, keep: Container[int]) -> None:
        """Remove the checkpoints of other steps."""
        for step in self.steps():
            if step not in keep:
                shutil.rmtree(self.folder(step))

    def folder(self, step: int) -> Path:
        """Where the checkpoint of a step is, or would be."""
        return self.directory / f"step-{step:06d}"


def _refuse_other_device(known: Mapping[str, Any], identity: Mapping[str, Any], directory: Path) -> None:
    there, here = known.get("device"), identity.get("device")
    if there != here and {**known, "device": here} == dict(identity):
        what = f"the checkpoints were made on {there}, and this process computes on {here}"
        how = f"start it with device {there}, where there is one; or remove the folder to begin again"
        raise InputError(what, where=directory, how=how)


class Resumable(Protocol):
    """A trainer that can stop between two steps: each step is a function of its number and of what was saved."""

    def step(self, step: int) -> dict[str, float]:
        """One update; ``step`` counts from 0."""

    def save(self, directory: Path) -> None:
        """Write everything that a step changes into an empty folder."""

    def load(self, directory: Path) -> None:
        """Continue exactly where `save` was called."""


def run_steps(
    trainer: Resumable, resume: ResumeState, steps: int, checkpoint_every: int, on_row: Callable[[dict[str, Any]], None]
) -> list[dict[str, Any]]:
    """All steps, or those after the newest checkpoint; returns the log, one row a step.

    A killed stage repeats at most ``checkpoint_every`` steps, to the same bytes; log lines after its newest checkpoint
    are cut off. On a stop request it saves the step that it is at, and repeats none.

    Raises:
        Stopped: on request.
    """
    log_path, start = resume.directory / LOG, 0
    if latest := resume.latest():
        start, folder = latest
        trainer.load(folder)
    log = keep_rows(log_path, start)
    with STOPPING.defer_signal():
        for step in range(start, steps):
            row = {"step": step, **trainer.step(step)}
            log.append(row)
            append_line(log_path, row)
            on_row(row)
            stop = STOPPING.requested
            if (step + 1) % checkpoint_every == 0 or step + 1 == steps or stop:
                resume.save(step + 1, trainer.save)
            if stop:
                what = f"stopped on request; the checkpoint of step {step + 1} is whole"
                raise Stopped(what, how="the same command goes on from there")
    return log


def identity(settings: Mapping[str, Any], inputs: Mapping[str, Path]) -> dict[str, Any]:
    """What a stage's result depends on: its settings, the content of its inputs, the code, and the kind of device."""
    from components.device import own_device  # with torch, which whoever reads checkpoints alone does without

    return {
        "device": own_device().type,
        "settings": sha256_json(settings),
        "inputs": {name: sha256_path(path) for name, path in inputs.items()},
        "code": code_digest(),
    }
