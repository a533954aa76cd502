"""Every command: what it does, its arguments and options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer.main

from components.config.shipped import PROJECT_CONFIGS
from flows.cli import app
from flows.manual.outputs import OUTPUTS

JSON = """## JSON

Every command that prints a table has `--json`: standard output then holds one JSON value and nothing else. Tables and
progress go to standard error or are left out; the exit code is the same. Keys are added in later versions, and none is
renamed.
"""


def commands() -> Iterator[str]:
    """Lines of the section."""
    yield "## Commands\n"
    for path, command in leaves(typer.main.get_command(app), "evenkeel"):
        yield f"### `{path}`\n"
        yield f"{' '.join((command.help or '').split())}\n"
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        if rows:
            yield table(("argument, option", "default", "meaning"), rows)
    yield JSON
    yield table(("command", "value"), [(f"`{name}`", value) for name, value in OUTPUTS.items()])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of Markdown, with an empty line after it. Pipes and lines within a cell stay in it."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * len(heads), *cells))


def leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Full name and definition of every command below one of the command line."""
    below = getattr(command, "commands", None)
    if below is None:
        yield path, command
    for name, one in (below or {}).items():
        yield from leaves(one, f"{path} {name}")


def _row(parameter: Any) -> tuple[str, str, str]:
    option = parameter.param_type_name == "option"
    names = list(parameter.opts) if option else [(parameter.metavar or parameter.name.upper()).strip("[]")]
    if option and parameter.metavar:
        names[-1] += f" {parameter.metavar}"
    default = parameter.default
    shown = "required" if parameter.required else "" if default in (None, "", False, (), []) else _written(default)
    return ", ".join(f"`{name}`" for name in names), shown, parameter.help or ""


def _written(default: Any) -> str:
    """A file of the project by its path in it: the page is the same in every checkout."""
    inside = isinstance(default, Path) and default.is_relative_to(PROJECT_CONFIGS.parent)
    return str(default.relative_to(PROJECT_CONFIGS.parent) if inside else default)
