"""Commands about this machine: what it serves, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from components.checks import Check
from components.config import Settings, load
from components.errors import EXIT_BAD_INPUT
from flows.cli.base import DEMO, AsJson, app, console
from flows.cli.launching import CLUSTER
from flows.display.output import field, print_json
from flows.host import doctor as examination
from flows.host.git import project_root
from flows.serving import options

STATE_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@app.command()
def serve(
    port: Annotated[
        int, typer.Option("--port", help="Port of the UI and the API on 127.0.0.1; 0: any free one.")
    ] = options.DEFAULT_PORT,
    database: Annotated[
        str,
        typer.Option("--database", help="postgresql+asyncpg://user@host:5432/name instead of SQLite in the project."),
    ] = "",
    notify: Annotated[
        str, typer.Option("--notify", help="Webhook that gets messages; better set EVENKEEL_NOTIFY_URL.")
    ] = "",
) -> None:
    """Serve the Prefect UI, a worker and all deployments until Ctrl-C; the next `serve` continues what then ran."""
    from flows.serving.serve import Serving

    Serving(options.choose(project_root(Path.cwd()), port, database, notify), console).run()


@app.command()
def doctor(
    config: Annotated[
        Path | None, typer.Option("--config", help="Configuration file whose registry, and cluster, are checked.")
    ] = None,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Check the cluster too that the configuration names.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check this machine and this project, and print how to fix what is wrong."""
    default = CLUSTER if kubernetes else DEMO
    config = config or (default if default.is_file() else None)
    table = Table("check", "state", "finding", "how to fix it")
    found = [*examination.examine(Path.cwd(), config), *(cluster(config) if kubernetes else ())]
    worst = EXIT_BAD_INPUT if any(check.state == "fail" for check in found) else 0
    if as_json:
        print_json([asdict(check) for check in found])
        raise typer.Exit(worst)
    for check in found:
        table.add_row(check.name, Text(check.state, STATE_STYLES[check.state]), field(check.finding), field(check.fix))
    console.print(table)
    raise typer.Exit(worst)


def cluster(config: Path | None) -> Iterator[Check]:
    """The checks of a cluster; without a configuration, of the one that kubectl would ask."""
    from components.launch.kubernetes.doctor import examine

    return examine(load(config) if config else Settings())
