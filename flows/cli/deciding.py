"""Commands with which a person decides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from components.config import load
from flows.cli.base import DEMO, Config, app
from flows.git import project_root
from flows.registry import decide, project_store


@app.command()
def approve(
    digest: Annotated[str, typer.Argument(help="Digest of the candidate, or its first digits.")],
    by: Annotated[str, typer.Option("--by", help="Your name. It is recorded as you type it.")],
    reject: Annotated[bool, typer.Option("--reject", help="Turn the candidate down.")] = False,
    note: Annotated[str, typer.Option("--note", help="Why.")] = "",
    config: Config = DEMO,
) -> None:
    """Decide on a candidate. An approval makes it the champion; a decision is final."""
    store = project_store(project_root(Path.cwd()), load(config))
    record = decide(store, digest, by=by, reject=reject, note=note)
    print(f"record {record.number}: {record.decision} {record.digest[:12]} by {record.by}")
