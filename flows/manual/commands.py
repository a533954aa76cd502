"""Every command: what it does, its arguments and options, and what `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer.main

from components.config.shipped import PROJECT_CONFIGS
from flows.cli import app

ONE_RUN = "one run: as in `status`, and `stages`, `settings`, `processes`, `logs`, `next`"
OUTPUTS: dict[str, str] = {
    "status": "a list of runs: `run`, `state`, `flow`, `stage`, `done`, `total`, `says`, `began`, `ended`, `seconds`, "
    "`candidate`, `reason`, `pid`, `flow_run`, `workspace`, `waiting` (null, or `candidate`, `run`, `since`, "
    "`waits_for`, `suspended`, `decide`); a candidate of no run that is here has `run`, `state`, `candidate`, "
    f"`waiting`. With RUN {ONE_RUN}",
    "run": f"{ONE_RUN}. With `--dry-run`: `run`, `workspace`, `commit`, `clean`, `states`, `stages`, `seconds`, `low`, "
    "`high`, `gpu_hours`, `refused`, `settings`",
    "launch": "as `run`; with `--dry-run` the manifests are the output",
    "adopt": "as `run`",
    "nightly": "as `run`; where there is nothing new `run` (null) and `says`",
    "compare": "by the letters of the runs: `runs`, `settings`, `curves`, `evaluation` (`suites`, `over_sft`, "
    "`pairs`), `costs`",
    "audit-verifier": "the content of `out/audit.json`",
    "audit": "`log`, `format`, `trainer`, `steps`, `first_step`, `last_step`, `signals`, `remarks`, `unread`, "
    "`proposal`, `verdicts`, `worst`, `judged`, `unjudged`, `too_short`, `exit_code`",
    "gate": "`run`, `result`, `before`, `rules`, `checks`",
    "rules": "name of a rule -> its settings",
    "plan": "`fits`, `room`, `parameters`, `trainable`, `processes`, `lacks`, `helps`, `others`; sizes in bytes",
    "version": "name of a package, `python`, `commit` -> its version; null where there is none",
    "doctor": "a list of checks: `name`, `state`, `finding`, `fix`",
    "history": "a list: the promotion records as they are stored",
    "show": "`digest`, `evidence`, `names`, `run`, `state`, `gate`, `decision`, `approvals`",
    "verify": "a list: what was looked at, and whether it holds",
    "reproduce": "what differs, as `.state/comparison.json` of the workspace has it",
    "janitor": "a list of what was removed, or was not, and why",
    "cluster status": "a list of runs on the cluster; with RUN one, and its `findings`",
}
"""The keys of what a command prints. Later versions add keys, and rename none."""

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
