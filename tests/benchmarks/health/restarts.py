"""Faults that stop a run once, and change what it goes on from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from components.training.assembly import Parts
from tests.benchmarks.health.faults.base import Fault


class Restart(Exception):
    """The run is to be left; its checkpoint is whole."""


class Restarting(ABC):
    """Something that a fault may be besides."""

    restarted = False

    @property
    @abstractmethod
    def stops_at(self) -> int:
        """The number of steps after which the run is stopped."""

    @abstractmethod
    def altered(self, checkpoints: Path) -> None:
        """Change the checkpoints in this folder, the newest of which the run goes on from."""


def leave(fault: Fault, parts: Parts) -> None:
    """Stop the run where its fault says so, with a checkpoint that serves its next start alone.

    Raises:
        Restart: it is to be assembled again.
    """
    if isinstance(fault, Restarting) and not fault.restarted and fault.clock.step >= fault.stops_at:
        parts.rollouts.settle()
        parts.state.checkpoint(for_resume_only=True)
        parts.state.writer.wait()
        fault.restarted = True
        raise Restart


def going_on(train: Callable[[], None], fault: Fault, checkpoints: Path) -> None:
    """Train, and once more where the fault has stopped the run, which changes its checkpoints meanwhile."""
    try:
        train()
    except Restart:
        if isinstance(fault, Restarting):
            fault.altered(checkpoints)
        train()
