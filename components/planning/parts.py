"""What the memory of one process is made of: parts, and the moments of a step at which each of them is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

GIB = 2**30
Moment = Literal["start", "sample", "critic", "forward", "backward", "hand-over", "checkpoint"]
"""``start``: until the learner is built. Then, in every step: completions are sampled, a critic learns, the learner
makes its passes, weights go to the sampler, and the learner's state is copied to be written."""
MOMENTS: tuple[Moment, ...] = get_args(Moment)
START: tuple[Moment, ...] = ("start",)
STEP: tuple[Moment, ...] = MOMENTS[1:]
PASS: tuple[Moment, ...] = ("forward", "backward")


@dataclass(frozen=True)
class Part:
    """One thing that takes memory."""

    name: str
    size: float
    """Bytes."""
    why: str
    moments: tuple[Moment, ...] = STEP
    on_gpu: bool = False


class Peak(NamedTuple):
    """Where a process takes most, and how many bytes."""

    moment: Moment
    size: float


@dataclass(frozen=True)
class Process:
    """One kind of process of a run. Processes of one kind take the same."""

    name: str
    count: int
    parts: Sequence[Part]
    gpus: int = 0
    """GPUs of each; parts that are ``on_gpu`` are of one of them."""

    def at(self, moment: Moment, on_gpu: bool = False) -> float:
        """Bytes at a moment, of the machine's memory or of a GPU's."""
        return sum(part.size for part in self.parts if moment in part.moments and part.on_gpu == on_gpu)

    def peak(self, on_gpu: bool = False) -> Peak:
        """The first of the moments at which it takes most."""
        return max((Peak(moment, self.at(moment, on_gpu)) for moment in MOMENTS), key=lambda peak: peak.size)

    def of(self, name: str) -> float:
        """Bytes of the parts of this name; 0 where there is none."""
        return sum(part.size for part in self.parts if part.name == name)
