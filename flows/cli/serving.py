"""The command that serves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.base import app, console
from flows.host.git import project_root
from flows.serving import options


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
    from flows.serving.serve import serve as run

    run(options.choose(project_root(Path.cwd()), port, database, notify), console)
