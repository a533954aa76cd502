"""Runs that are stopped and go on from a checkpoint that is not what it was."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import torch

from components.files import read_json, write_json
from components.learner.state import Piece, read_tensors
from components.learner.state.store import Reach, save
from components.learner.torch_learner import COUNTERS, WEIGHTS
from components.resume import NAME
from components.seeds import derive
from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.base import HeldBack
from tests.benchmarks.health.generated.held_back.optimizers import coarse
from tests.benchmarks.health.restarts import Restarting

Tensors = dict[str, torch.Tensor]
FIRST, SECOND = "optimizer/exp_avg/", "optimizer/exp_avg_sq/"
WEIGHT = "weight/"


class Resumed(HeldBack, Restarting, Generated):
    """The run is stopped once, where the fault begins."""

    part = "learner"
    scopes = ("all",)
    times = ("constant",)

    @property
    def stops_at(self) -> int:
        return self.begins


class Retold(Resumed):
    """Some tensors of the newest checkpoint are others; ``older`` checkpoints are at hand."""

    def altered(self, checkpoints: Path) -> None:
        *older, newest = (path / WEIGHTS for path in folders(checkpoints))
        tensors = self.retold(read_tensors(newest), [read_tensors(path) for path in older])
        save({name: Piece.of(tensor) for name, tensor in tensors.items()}, Reach(newest))

    @abstractmethod
    def retold(self, tensors: Tensors, older: list[Tensors]) -> Tensors:
        """What is read by the run that goes on."""


def folders(checkpoints: Path) -> list[Path]:
    """Those of whole checkpoints, oldest first."""
    return sorted(path for path in checkpoints.iterdir() if NAME.fullmatch(path.name))


def oldest(older: list[Tensors], tensors: Tensors) -> Tensors:
    return older[0] if older else tensors


class SecondMomentsLost(Retold):
    """First moments are there, second ones are zero."""

    sizes = (1.0,)

    def retold(self, tensors: Tensors, older: list[Tensors]) -> Tensors:
        return {name: torch.zeros_like(t) if name.startswith(SECOND) else t for name, t in tensors.items()}


class MomentsMixedUp(Retold):
    """Moments are those of another tensor of the same shape."""

    sizes = (1.0,)

    def retold(self, tensors: Tensors, older: list[Tensors]) -> Tensors:
        found = dict(tensors)
        for kind in (FIRST, SECOND):
            shapes: dict[Any, list[str]] = {}
            for name in sorted(tensors):
                if name.startswith(kind):
                    shapes.setdefault(tuple(tensors[name].shape), []).append(name)
            for names in shapes.values():
                found |= {name: tensors[other] for name, other in zip(names, [*names[1:], names[0]], strict=True)}
        return found


class MomentsScaled(Retold):
    """Moments were stored times ``size``, squares too, which are not scaled back."""

    sizes = (10.0, 1000.0)

    def retold(self, tensors: Tensors, older: list[Tensors]) -> Tensors:
        return {name: t * self.size if name.startswith(FIRST) else t for name, t in tensors.items()}


class OldWeights(Retold):
    """Weights of the oldest checkpoint, with the newest moments; ``size`` is the share of its tensors."""

    sizes = (0.3, 1.0)

    def retold(self, tensors: Tensors, older: list[Tensors]) -> Tensors:
        before = oldest(older, tensors)
        return {name: before[name] if self._old(name) else t for name, t in tensors.items()}

    def _old(self, name: str) -> bool:
        return name.startswith(WEIGHT) and derive(self.seed, name) % 100 < 100 * self.size


class CoarseCheckpoint(Retold):
    """Weights were stored in a coarse format: ``size`` bits of an fp32 number are lost."""

    sizes = (20, 22)

    def retold(self, tensors: Tensors, older: list[Tensors]) -> Tensors:
        return {name: coarse(t, round(self.size)) if name.startswith(WEIGHT) else t for name, t in tensors.items()}


class TornCheckpoint(Retold):
    """A share of the weights was never written, and is zero."""

    sizes = (0.01, 0.1)

    def retold(self, tensors: Tensors, older: list[Tensors]) -> Tensors:
        stream = torch.Generator().manual_seed(derive(self.seed, "torn"))
        return {
            name: t * (torch.rand(t.shape, generator=stream) >= self.size) if name.startswith(WEIGHT) else t
            for name, t in tensors.items()
        }


class MixedUpWeights(Retold):
    """Tensors of the same shape, two layers say, have changed places; ``size`` is the share of them."""

    sizes = (0.1, 1.0)

    def retold(self, tensors: Tensors, older: list[Tensors]) -> Tensors:
        found = dict(tensors)
        names = [n for n in sorted(tensors) if n.startswith(WEIGHT) and derive(self.seed, n) % 100 < 100 * self.size]
        for name in names:
            shape = tensors[name].shape
            same = [n for n in sorted(tensors) if n.startswith(WEIGHT) and n != name and tensors[n].shape == shape]
            if same:
                found[name] = tensors[same[derive(self.seed, "other", name) % len(same)]]
        return found


class WarmingUpAgain(Resumed):
    """The number of updates was not stored: the learning rate warms up anew."""

    part = "settings"
    sizes = (1.0,)

    def altered(self, checkpoints: Path) -> None:
        path = folders(checkpoints)[-1] / COUNTERS
        write_json(path, {**read_json(path), "updates": 0})


class ScheduleFromTheStart(Resumed):
    """The place in the epoch was not stored: the same prompts are drawn again."""

    part = "schedule"
    sizes = (1.0,)

    def altered(self, checkpoints: Path) -> None:
        path = folders(checkpoints)[-1] / "state.json"
        state = read_json(path)
        if "drawn" in state["schedule"]:
            state["schedule"]["drawn"] = 0
        write_json(path, state)


RESUMES = (
    SecondMomentsLost,
    MomentsMixedUp,
    MomentsScaled,
    OldWeights,
    CoarseCheckpoint,
    TornCheckpoint,
    MixedUpWeights,
    WarmingUpAgain,
    ScheduleFromTheStart,
)
