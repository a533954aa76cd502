"""Commands for runs on a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from components.errors import InputError
from components.printing import block
from flows.cli.base import AsJson, Config, Debug, Overrides, app
from flows.cli.runs import run
from flows.cluster import dry_run as launching
from flows.host.git import project_root
from flows.run.workspace import locate

CLUSTER = Path("configs/kubernetes.yaml")


@app.command()
def launch(
    config: Config = CLUSTER,
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the manifests, and on standard error what they cost; then stop.")
    ] = False,
    server: Annotated[
        bool, typer.Option("--server", help="With --dry-run: let the cluster check the manifests as well.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run the pipeline with its training on a Kubernetes cluster, a JobSet a stage. k8s/README.md comes first."""
    if server and not dry_run:
        raise InputError("there is nothing to check on the server", where="--server", how="add --dry-run")
    if as_json and dry_run:
        raise InputError("manifests are printed as YAML", where="--json", how="leave out --json or --dry-run")
    if not dry_run:
        run(config, overrides=[*(overrides or ()), "launch.kind=kubernetes"], as_json=as_json, debug=debug)
        return
    workspace = locate(project_root(Path.cwd()), config, overrides or ())
    plan = launching.planned(workspace, _note)
    manifests, table = launching.shown(plan)
    print(manifests, end="", flush=True)
    _note(table)
    if server:
        launching.check_on_server(plan)
        _note(f"the cluster would take these objects (server-side dry run, namespace {plan.how.namespace})")
        _note(f"whether their pods find room, claim and accounts: evenkeel doctor --kubernetes --config {config}")


def _note(text: str) -> None:
    print(block(text), file=sys.stderr, flush=True)
