"""The command that computes how much memory a run takes, before anything of it is started."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from components.config import load
from components.config.quantities import BYTES, size
from components.errors import InputError
from components.progress import reporting
from components.working import working
from flows.cli.base import DEMO, AsJson, Config, Overrides, answer, app, console

EXIT_DOES_NOT_FIT = 3
MOST_TOKENS = 10**9
"""Of a prompt."""


@app.command()
def plan(
    config: Config = DEMO,
    model: Annotated[Path | None, typer.Option(help="A config.json, or its folder, to plan for.")] = None,
    gpu_memory: Annotated[
        str, typer.Option(metavar="80GiB", help="Of the GPU that each rank has; without it, CPUs.")
    ] = "",
    memory: Annotated[str, typer.Option(metavar="512GiB", help="Of the machine; without it, this one's.")] = "",
    prompt_tokens: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="Tokens of a long prompt.")] = 256,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """How much memory each process of the training takes, part by part, and what fits. No weights are needed.

    Exit code 3: it does not fit."""
    gpu, there = (amount(text) if text else None for text in (gpu_memory, memory))
    settings = load(config, overrides or ())
    with reporting("evenkeel"), working("loading transformers"):
        from components.planning.fit import Room
        from flows.display import memory_plan

    with reporting("evenkeel"), working("building the model without weights"):
        found = memory_plan.planned(settings, model, Room(there, gpu), prompt_tokens)
    answer(as_json, lambda: memory_plan.to_dict(found), lambda: memory_plan.show(console, found))
    if found.lacks:
        raise typer.Exit(EXIT_DOES_NOT_FIT)


def amount(text: str) -> float:
    """Bytes, as in 80GiB, 80Gi or 80GB. What is no amount of memory is an `InputError`."""
    plain = text.strip().removesuffix("B")
    if not re.match(BYTES, plain) or not plain[-1].isalpha():  # a number alone would be bytes
        how = "write it as 80GiB or 80GB"
        raise InputError(f"{text!r} is no amount of memory", where="--gpu-memory, --memory", how=how)
    return float(size(plain))
