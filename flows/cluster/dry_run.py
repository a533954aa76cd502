"""What `evenkeel launch --dry-run` shows: the objects that a run would make on its cluster, and what they cost."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from components.code_digest import code_digest
from components.config import Settings
from components.config.kubernetes import VolumeState
from components.errors import InputError
from components.installed import pins_digest
from components.launch.kubernetes import cost
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.manifests import as_yaml, jobset
from components.launch.kubernetes.plan import USER, RunPlan, Submission, plan_run
from components.launch.kubernetes.submission import submitter
from components.planning.least import check_run
from components.pods.code import code_folder
from flows.run.workspace import Workspace

STAGE = "train"


def on_a_cluster(settings: Settings) -> Settings:
    """The settings with ``launch.kind`` kubernetes. A configuration without a section for it is an `InputError`."""
    if settings.launch.kubernetes is None:
        how = "use --config configs/kubernetes.yaml, or a file that extends it"
        raise InputError("the configuration has no section for a cluster", where="launch.kubernetes", how=how)
    launch = {**settings.launch.model_dump(), "kind": "kubernetes"}
    return Settings.model_validate({**settings.model_dump(), "launch": launch})


def planned(workspace: Workspace, note: Callable[[str], None]) -> RunPlan:
    """The plan of the run's training. Where its folder is not on the shared volume here, it is shown as it would be
    there, with a note."""
    settings = on_a_cluster(workspace.settings)
    check_run(settings, [STAGE])
    how, root = settings.launch.kubernetes, workspace.root.absolute()
    assert how is not None
    if isinstance(how.shared, VolumeState) and not root.is_relative_to(how.shared.path):
        there = Path(how.shared.path) / workspace.project.name / "runs" / workspace.run_id
        note(f"{root} is not below {how.shared.path}, where pods see the shared volume: shown as if it were {there}")
        root = there
    project, who = workspace.project, how.owner or submitter()
    digests, user = (code_digest(), pins_digest(project)), how.user or os.getuid() or USER
    now, source = datetime.now(UTC), code_folder(project)
    return plan_run(settings, Submission(STAGE, root, workspace.run_id, who, *digests, now, user, source))


def shown(plan: RunPlan) -> tuple[str, str]:
    """The manifest, and the table of resources and cost."""
    return as_yaml(jobset(plan)), cost.table(plan)


def check_on_server(plan: RunPlan) -> None:
    """Have the cluster go through the motions: schemas, admission, quotas that count objects; nothing is made. That
    there is no cluster, or that it would refuse, is an `InputError`."""
    cluster = Cluster.connect(plan.how.namespace, plan.how.context)
    cluster.dry_run(jobset(plan))
