"""What `evenkeel plan` prints: a table for every kind of process, what fits, and other ways to train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.config import Settings
from components.config.policy import CheckpointModel, LoraSettings
from components.planning.fit import RANKS, Help, Lack, Room, changed, helps, lacks
from components.planning.fit import planned as processes_for
from components.planning.passes import GIB, MOMENTS, Load, Process
from components.planning.shapes import Shape, config_at, shape_of, tiny_config
from components.processes.memory import available, gpu_memory
from flows.display.output import say

ADAPTER = LoraSettings()
"""Of the comparison, where the configuration has none."""


class Other(NamedTuple):
    """Another way to train."""

    trained: str
    settings: Settings
    processes: Sequence[Process]
    fits: bool


@dataclass(frozen=True)
class Planned:
    """The plan of one run's training."""

    settings: Settings
    shape: Shape
    load: Load
    room: Room
    processes: Sequence[Process]
    lacks: Sequence[Lack]
    helps: Sequence[Help]
    others: Sequence[Other]


def planned(settings: Settings, model: Path | None, room: Room, prompt: int) -> Planned:
    """The plan of these settings for prompts of ``prompt`` tokens.

    Args:
        model: a `config.json` in place of the model's own.
        room: available memory; this machine's memory and GPU if it names neither.

    Raises:
        InputError: there is no model of that kind, or the adapter does not fit it.
    """
    own = settings.policy.model
    at = model or (own.path if isinstance(own, CheckpointModel) else None)
    config = config_at(at) if at is not None else tiny_config(own)  # type: ignore[arg-type]

    shape_with = cache(partial(shape_of, config))

    def shape_for(chosen: Settings) -> Shape:
        return shape_with(chosen.policy.lora)

    if room == Room() and settings.launch.kind != "kubernetes":
        room = Room(available(), None if settings.device == "cpu" else gpu_memory())
    processes = processes_for(settings, shape_for, room, prompt)
    lacking, helping = lacks(settings, processes, room), helps(settings, shape_for, room, prompt)
    load, others = Load.of(settings, prompt), compared(settings, shape_for, room, prompt)
    return Planned(settings, shape_for(settings), load, room, processes, lacking, helping, others)


def compared(settings: Settings, shape_for: Callable[[Settings], Shape], room: Room, prompt: int) -> list[Other]:
    """All weights and an adapter, by 1 to 64 ranks; by FSDP2 where the settings have one process. What the
    settings refuse is left out."""
    kind = "fsdp2" if settings.learner.kind == "torch" else settings.learner.kind
    found: list[Other] = []
    launch = "processes" if settings.launch.kind == "inline" else settings.launch.kind
    for text, lora in (("all weights", None), ("LoRA", settings.policy.lora or ADAPTER)):
        for ranks in RANKS:
            how = {"kind": kind, "ranks": {"processes": ranks}}
            adapter = None if lora is None else lora.model_dump()
            other = changed(settings, {"learner": how, "policy": {"lora": adapter}, "launch": {"kind": launch}})
            if other is None:
                continue
            processes = processes_for(other, shape_for, room, prompt)
            found.append(Other(text, other, processes, not lacks(other, processes, room)))
    return found


def show(console: Console, plan: Planned) -> None:
    """Print it; each part is explained once."""
    explained = set[str]()
    say(console, *_facts(plan))
    for process in plan.processes:
        console.print(_table_of(process, plan.room))
        about = dict.fromkeys(f"  {part.name}: {part.why}" for part in process.parts if part.size > 0)
        say(console, *(line for line in about if line not in explained))
        explained |= set(about)
    say(console, *_verdict(plan))
    console.print(_comparison(plan))


def to_dict(plan: Planned) -> dict[str, Any]:
    """The same as JSON values; sizes in bytes. ``memory`` and ``gpu`` of a process have every moment of a step."""
    return {
        "fits": not plan.lacks,
        "room": asdict(plan.room),
        "parameters": plan.shape.parameters,
        "trainable": plan.shape.trainable,
        "processes": [_process(process) for process in plan.processes],
        "lacks": [lack._asdict() for lack in plan.lacks],
        "helps": [help._asdict() for help in plan.helps],
        "others": [_other(other) for other in plan.others],
    }


def _other(other: Other) -> dict[str, Any]:
    processes = [_process(process) for process in other.processes]
    ranks = other.settings.learner.ranks.processes
    return {"trained": other.trained, "ranks": ranks, "fits": other.fits, "processes": processes}


def _process(process: Process) -> dict[str, Any]:
    places = (("memory", False), ("gpu", True))
    sums = {place: {moment: process.at(moment, on_gpu) for moment in MOMENTS} for place, on_gpu in places}
    parts = [asdict(part) for part in process.parts]
    return {"name": process.name, "count": process.count, "gpus": process.gpus, **sums, "parts": parts}


def _facts(plan: Planned) -> tuple[str, ...]:
    """Which model, and how much of it is trained."""
    shape, kinds = plan.shape, ", ".join(f"{kind} {count:,}" for kind, count in plan.shape.kinds.items())
    tied = " (and output layer)" if shape.tied else ""
    trained = f"{shape.trainable:,} trained" if shape.lora else "all of them trained"
    passes = f"{plan.load.tokens:,} tokens a pass, {plan.load.rows:,} completions sampled together"
    return (
        f"{shape.architecture}: {shape.parameters:,} parameters, {trained}",
        f"  {kinds.replace('embedding', f'embedding{tied}', 1)}",
        f"  {passes}; prompts of {plan.load.prompt:,} tokens (--prompt-tokens), responses of {plan.load.new:,}",
    )


def _table_of(process: Process, room: Room) -> Table:
    """Every part at the moments at which it is there, in GiB; then the sums, and what there is."""
    times = f", {process.count} of them" if process.count > 1 else ""
    moments = [moment for moment in MOMENTS if moment != "critic" or process.of("critic")]
    table = Table("part", *moments, box=SIMPLE, padding=(0, 1, 0, 0), title=f"{process.name}{times}, GiB")
    for place, column in enumerate(table.columns):
        column.no_wrap, column.justify = True, "right" if place else "left"
    for on_gpu in (True, False):
        parts = [part for part in process.parts if part.on_gpu == on_gpu and part.size > 0]
        for part in parts:
            table.add_row(part.name, *(gib(part.size) if moment in part.moments else "" for moment in moments))
        if parts:
            peak = process.peak(on_gpu)
            sums = (Text(gib(process.at(one, on_gpu)), "bold" if one == peak.moment else "") for one in moments)
            there = f" of {gib(room.gpu)}" if on_gpu and room.gpu is not None else ""
            table.add_row(Text(f"{'GPU' if on_gpu else 'memory'}{there}", "bold"), *sums, end_section=True)
    return table


def _verdict(plan: Planned) -> list[str]:
    """Whether it fits, and what helps where it does not."""
    if not plan.lacks:
        return ["fits" if plan.room != Room() else "fits, as far as is known (--gpu-memory sets the memory of a GPU)"]
    lines = ["does not fit:", *(f"  {lack}" for lack in plan.lacks)]
    if not plan.helps:
        return [*lines, "no single setting helps"]
    if plan.helps[0].fits:
        return [*lines, "it fits with one of:", *(f"  --set {help.setting!r}" for help in plan.helps)]
    best = plan.helps[0]
    return [*lines, f"no single setting is enough; --set {best.setting!r} needs {100 * best.share:.0f} % of it"]


def _comparison(plan: Planned) -> Table:
    """What is needed otherwise: the peaks of rank 0 and of the others."""
    on_gpu, kind = plan.room.gpu is not None, plan.settings.learner.kind.replace("torch", "fsdp2")
    places = [("GPU", True), ("memory", False)] if on_gpu else [("memory", False)]
    heads = [f"{who}\n{place}" for place, _ in places for who in ("rank 0", "others")]
    table = Table("trained", "ranks", *heads, "", box=SIMPLE, padding=(0, 1, 0, 0), title=f"with {kind}, GiB")
    for other in plan.others:
        ranks = [one for one in other.processes if one.name.startswith("rank")]
        peaks = []
        for _, gpu in places:
            peaks += [gib(ranks[0].peak(gpu).size), gib(ranks[1].peak(gpu).size) if len(ranks) > 1 else ""]
        count = str(other.settings.learner.ranks.processes)
        table.add_row(other.trained, count, *peaks, "fits" if other.fits else "does not fit")
    for column in table.columns:
        column.no_wrap = True
    return table


def gib(size: float) -> str:
    """Bytes in GiB, with as many digits as say something."""
    found = size / GIB
    return f"{found:,.0f}" if found >= 100 else f"{found:.1f}" if found >= 10 else f"{found:.2f}"
