"""The command that takes over a checkpoint of another trainer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.base import DEMO, AsJson, Config, Debug, Overrides, app
from flows.cli.runs import run


@app.command()
def adopt(
    checkpoint: Annotated[Path, typer.Argument(help="A Hugging Face folder with safetensors, or an adapter of peft.")],
    log: Annotated[Path, typer.Option("--log", help="What the trainer logged: any log that `evenkeel audit` reads.")],
    base: Annotated[
        Path | None, typer.Option("--base", help="The checkpoint that training began with; else policy.model.")
    ] = None,
    names: Annotated[Path | None, typer.Option("--names", help="As for `evenkeel audit`.")] = None,
    config: Config = DEMO,
    overrides: Overrides = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, and stop.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Judge and propose a checkpoint that another trainer made. Nothing is trained: data, verifier, evaluation, probe
    sets, gate, report and approval are those of a run. What its log cannot show is left to the person who approves.
    """
    adopted: dict[str, Any] = {"checkpoint": {"path": str(checkpoint)}, "log": {"path": str(log)}}
    if names is not None:
        from components.health.readers.names import load_names

        adopted["names"] = load_names(names).model_dump(mode="json")
    settings = [
        f"train.adopted={json.dumps(adopted)}",
        "sft.steps=0",
        "triage.override=trained elsewhere",
        "health.rules_file=logs",
    ]
    if base is not None:
        settings.append(f"policy.model={json.dumps({'kind': 'checkpoint', 'path': str(base)})}")
    run(
        config=config,
        recipe="",
        overrides=[*settings, *(overrides or ())],
        dry_run=dry_run,
        as_json=as_json,
        debug=debug,
    )
