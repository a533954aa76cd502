"""Writing checkpoints while the run goes on, and which of them are kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from pathlib import Path

from components.config.training import CheckpointSettings
from components.directories import StagedDirectory
from components.errors import CorrectableError
from components.files import os_errors
from components.health.responses import Saved
from components.resume import ResumeState
from components.training.background import worker

Finish = Callable[[], None]
"""Writes the rest of a checkpoint; nothing that changes meanwhile is part of it."""


class CheckpointWriter:
    """Copies a checkpoint at once, and writes, flushes and renames it in the background: one at a time.

    Older checkpoints are dropped once the new one is complete, so a run that is killed, or whose disk is full, goes on
    from the newest complete one.
    """

    def __init__(self, resume: ResumeState, *, asynchronous: bool) -> None:
        self._resume = resume
        self._worker = worker("checkpoint", background=asynchronous)
        self._writing: Future[None] | None = None

    def write(self, step: int, begin: Callable[[Path], Finish], keep: Container[int]) -> None:
        """Write the checkpoint of ``step``, then drop those of steps that are not to be kept.

        ``begin`` gets an empty folder and returns what is left to do. Waits for the checkpoint before.

        Raises:
            MachineError, InputError: this checkpoint, or the one before, cannot be written.
        """
        self.wait()
        with self._explained(step):
            staged = StagedDirectory(self._resume.folder(step))
            with staged.discarded_on_error():
                finish = begin(staged.path)
        self._writing = self._worker.submit(self._complete, step, staged, finish, keep)

    def _complete(self, step: int, staged: StagedDirectory, finish: Finish, keep: Container[int]) -> None:
        with self._explained(step), staged.discarded_on_error():
            finish()
            staged.commit()
        with os_errors(f"remove checkpoints before that of step {step}, which is whole", self._resume.directory):
            self._resume.drop_all_but(keep)

    @contextmanager
    def _explained(self, step: int) -> Iterator[None]:
        """Say of an error which checkpoint is missing, and that nothing else is."""
        try:
            with os_errors("write", self._resume.folder(step)):
                yield
        except CorrectableError as error:
            latest = self._resume.latest()
            again = (
                "from the beginning" if latest is None else f"from the checkpoint of step {latest[0]}, which is whole"
            )
            raise type(error)(
                f"the checkpoint of step {step} was not written: {error.what}",
                where=error.where,
                how="; ".join(filter(None, (error.how, f"started again, the run goes on {again}"))),
            ) from error

    def check(self) -> None:
        """Raise what has gone wrong so far; waits for nothing."""
        if self._writing is not None and self._writing.done():
            self.wait()

    def wait(self) -> None:
        """Return when nothing is being written any more. Raises what went wrong."""
        if self._writing is None:
            return
        wait_for([self._writing])
        writing, self._writing = self._writing, None
        writing.result()

    def close(self) -> None:
        """End the thread, which finishes what it is at. An error that was not collected is shown."""
        self._worker.shutdown()
        if self._writing is not None and (error := self._writing.exception()) is not None:
            print(error, file=sys.stderr)


def rollback_candidates(saved: Sequence[Saved], healthy: int, apart: int) -> list[Saved]:
    """Those that a roll-back may need: the run's beginning, the newest one, the latest ``healthy`` ones that were
    healthy when they were made, and two of these at least ``apart`` steps apart, so that one of them is older than any
    verdict's evidence.
    """
    steps = [one.step for one in saved if one.healthy and one.step]
    spaced: list[int] = []
    for step in steps:
        if not spaced or step - spaced[-1] >= apart:
            spaced.append(step)
    kept = (0, saved[-1].step, *steps[-healthy:], *spaced[-2:])
    return [one for one in saved if one.step in kept]


def retained_checkpoints(saved: Sequence[Saved], settings: CheckpointSettings, *, judged: bool) -> list[Saved]:
    """The newest ones, the healthy ones where health is judged, and the best by dev pass@1 (of equals the older)."""
    last = saved[-settings.keep_last :]
    healthy = [one for one in saved if one.healthy] if judged else []
    if settings.keep_healthy is not None:
        healthy = healthy[max(0, len(healthy) - settings.keep_healthy) :]
    measured = sorted((one for one in saved if one.dev is not None), key=lambda one: -(one.dev or 0.0))
    kept = {one.step for one in (*last, *healthy, *measured[: settings.keep_best])}
    return [one for one in saved if one.step in kept]
