"""What fits, and which setting helps where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import ValidationError

from components.config import Settings
from components.config.kubernetes import KubernetesSettings, PodSettings
from components.config.quantities import size
from components.config.reading import merge
from components.planning.passes import GIB, MOMENTS, Load, Process
from components.planning.processes import processes_of
from components.planning.shapes import Shape

ShapeOf = Callable[[Settings], Shape]
"""The shape of a run's policy: with an adapter where the settings have one."""
RANKS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Room:
    """What is available."""

    machine: float | None = None
    """Bytes of memory that all processes share; None: it is not known, or each pod has its own."""
    gpu: float | None = None
    """Bytes of a GPU; None: there is none."""


class Lack(NamedTuple):
    """A place that is too small."""

    what: str
    needed: float
    there: float

    def __str__(self) -> str:
        return f"{self.what} needs {self.needed / GIB:.1f} GiB, and has {self.there / GIB:.1f}"


class Help(NamedTuple):
    """One setting, and whether the run fits with it alone."""

    setting: str
    fits: bool
    share: float
    """Of what is needed now, in the place that lacks most."""


def lacks(settings: Settings, processes: Sequence[Process], room: Room) -> list[Lack]:
    """The places that are too small for these processes; none where all of them fit, as far as is known."""
    found = []
    for process in processes:
        if room.gpu is not None and process.gpus and (peak := process.peak(on_gpu=True)).size > room.gpu:
            found.append(Lack(f"{process.name}, {peak.moment}: a GPU", peak.size, room.gpu))
    if settings.launch.kind == "kubernetes" and settings.launch.kubernetes is not None:
        found += _pods(settings, settings.launch.kubernetes, processes)
    elif room.machine is not None:
        needed, moment = together(processes)
        if needed > room.machine:
            found.append(Lack(f"this machine, {moment}", needed, room.machine))
    return found


def _pods(settings: Settings, how: KubernetesSettings, processes: Sequence[Process]) -> Iterator[Lack]:
    """Pods whose memory is too small: one of the learner may have several ranks, of which rank 0 takes most."""
    followers = [one for one in processes if one.name.startswith(("rank 1", "ranks"))]
    for process in processes:
        pod: PodSettings = how.learner
        others = min(how.learner.processes, settings.learner.ranks.processes) - 1
        if process.name == "server":
            pod, others = how.rollout, 0
        needed = process.peak().size + others * sum(one.peak().size for one in followers)
        if needed > size(pod.memory):
            yield Lack(f"the pod of {process.name}", needed, size(pod.memory))


def together(processes: Sequence[Process]) -> tuple[float, str]:
    """Bytes of the machine's memory that processes take where they take most, and that moment."""
    return max((sum(one.count * one.at(moment) for one in processes), moment) for moment in MOMENTS)


def helps(settings: Settings, shape_of: ShapeOf, room: Room, prompt: int) -> list[Help]:
    """Single settings with which less is needed: those that fit first, then the one that saves most."""
    before = lacks(settings, planned(settings, shape_of, room, prompt), room)
    if not before:
        return []
    worst, found = max(before, key=lambda lack: lack.needed / lack.there), []
    for text, other in variants(settings):
        after = lacks(other, planned(other, shape_of, room, prompt), room)
        same = [lack.needed for lack in after if _place(lack) == _place(worst)]
        found.append(Help(text, not after, max(same, default=worst.there) / worst.needed))
    fitting = [one for one in found if one.fits]
    rest = sorted((one for one in found if not one.fits and one.share < 1), key=lambda one: one.share)
    return fitting or rest[:1]


def _place(lack: Lack) -> str:
    return "GPU" if lack.what.endswith("GPU") else "memory"


def planned(settings: Settings, shape_of: ShapeOf, room: Room, prompt: int) -> list[Process]:
    """The processes of a run."""
    return processes_of(settings, shape_of(settings), Load.of(settings, prompt), room.gpu)


def variants(settings: Settings) -> Iterator[tuple[str, Settings]]:
    """Every single setting that takes less memory, as it is written after ``--set``, and the settings with it."""
    learner, policy = settings.learner, settings.policy
    changes: list[dict[str, Any]] = []
    if policy.lora is None:
        changes.append({"policy": {"lora": {"rank": 16, "alpha": 32}}})
    if learner.kind == "deepspeed" and learner.zero.stage < 3:
        changes.append({"learner": {"zero": {"stage": 3}}})
    if learner.kind != "torch":
        more = [ranks for ranks in RANKS if ranks > learner.ranks.processes]
        changes += [{"learner": {"ranks": {"processes": ranks}}} for ranks in more]
    if not learner.activation_checkpointing and not learner.routing_replay:
        changes.append({"learner": {"activation_checkpointing": True}})
    for share in (2, 4, 8):
        if learner.micro_batch_tokens // share >= 64:
            changes.append({"learner": {"micro_batch_tokens": learner.micro_batch_tokens // share}})
    if learner.compute_dtype != "bfloat16":
        changes.append({"learner": {"compute_dtype": "bfloat16"}})
    if policy.dtype == "float32":
        changes.append({"policy": {"dtype": "bfloat16"}})
    if settings.train.checkpoints.asynchronous:
        changes.append({"train": {"checkpoints": {"asynchronous": False}}})
    for change in changes:
        if (other := changed(settings, change)) is not None:
            yield _text(change), other


def changed(settings: Settings, change: dict[str, Any]) -> Settings | None:
    """The settings with some of them replaced; None where they do not go together."""
    try:
        return settings.model_validate(merge(settings.model_dump(), change))
    except ValidationError:
        return None


def _text(change: Any) -> str:
    """``a.b=value``."""
    if isinstance(change, dict) and len(change) == 1:
        ((key, value),) = change.items()
        rest = _text(value)
        return f"{key}.{rest}" if isinstance(value, dict) and len(value) == 1 else f"{key}={rest}"
    if isinstance(change, dict):
        return "{" + ", ".join(f"{key}: {value}" for key, value in change.items()) + "}"
    return str(change).lower() if isinstance(change, bool) else str(change)
