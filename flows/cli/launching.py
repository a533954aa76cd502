"""Commands for runs on a cluster."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from components.code_digest import code_digest
from components.config import Settings
from components.config.kubernetes import VolumeState
from components.errors import InputError
from components.installed import pins_digest
from components.launch.kubernetes import cost
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.manifests import as_yaml, jobset
from components.launch.kubernetes.names import MAIN
from components.launch.kubernetes.plan import USER, RunPlan, Submission, plan_run
from components.launch.kubernetes.submission import submitter
from components.planning.least import check_run
from components.pods.code import code_folder
from components.printing import block
from flows.cli.base import AsJson, Config, Debug, Overrides, app
from flows.cli.runs import run
from flows.host.git import project_root
from flows.run.workspace import Workspace, locate

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
    plan = _planned(workspace)
    print(as_yaml(jobset(plan)), end="", flush=True)
    _note(cost.table(plan))
    if server:
        # The cluster goes through the motions: schemas, admission, quotas that count objects; nothing is made.
        Cluster.connect(plan.how.namespace, plan.how.context).dry_run(jobset(plan))
        _note(f"the cluster would take these objects (server-side dry run, namespace {plan.how.namespace})")
        _note(f"whether their pods find room, claim and accounts: evenkeel doctor --kubernetes --config {config}")


def _planned(workspace: Workspace) -> RunPlan:
    """The plan of the run's training. Where its folder is not on the shared volume here, it is shown as it would be
    there, with a note. A configuration without a section for a cluster is an `InputError`."""
    how, root = workspace.settings.launch.kubernetes, workspace.root.absolute()
    if how is None:
        fix = "use --config configs/kubernetes.yaml, or a file that extends it"
        raise InputError("the configuration has no section for a cluster", where="launch.kubernetes", how=fix)
    launch = {**workspace.settings.launch.model_dump(), "kind": "kubernetes"}
    settings = Settings.model_validate({**workspace.settings.model_dump(), "launch": launch})
    check_run(settings, [MAIN])
    if isinstance(how.shared, VolumeState) and not root.is_relative_to(how.shared.path):
        there = Path(how.shared.path) / workspace.project.name / "runs" / workspace.run_id
        _note(f"{root} is not below {how.shared.path}, where pods see the shared volume: shown as if it were {there}")
        root = there
    project, who = workspace.project, how.owner or submitter()
    digests, now, source = (code_digest(), pins_digest(project)), datetime.now(UTC), code_folder(project)
    submits = os.getuid() if isinstance(how.shared, VolumeState) else USER
    user = how.user or submits or USER
    return plan_run(settings, Submission(MAIN, root, workspace.run_id, who, *digests, now, user, source))


def _note(text: str) -> None:
    print(block(text), file=sys.stderr, flush=True)
