"""Where a candidate comes from: `lineage.json` in its evidence, which the gate compares with `dvc.lock`; and putting
the candidate into the registry, at the end of its run and when a finished run is resumed.

Who started the run is a claim without proof. At a terminal it is Git's configured identity and the login; in a deployed
run it is the creator that Prefect recorded for the flow run. Prefect has no users: for a run that was started in its UI
there is no claim.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from components.code_digest import code_digest
from components.config.promotion import load_policy
from components.errors import InputError
from components.files import os_errors, read_json, sha256_json, sha256_tree, write_json
from components.gate.bundle import gather
from components.registry import propose
from components.working import working
from flows.governance.registry import project_store, signing_key
from flows.host.branches import branch_of
from flows.host.dvc import locked_in
from flows.host.git import SNAPSHOT_IDENTITY, git, succeeds
from flows.recording.record import packages
from flows.run.workspace import Workspace

SCHEMA = 1
FILE = "started_by.json"


def trace(workspace: Workspace) -> dict[str, Any]:
    """Commit, tree, inputs, who started it, and the digests of the files in the workspace now, computed from the
    files themselves.

    Raises:
        InputError: Git or a file cannot be read.
    """
    root, commit = workspace.root, workspace.snapshot.commit
    pinned = packages(root / "constraints.txt")
    return {
        "schema": SCHEMA,
        "run": workspace.run_id,
        "started_by": starters(workspace) or [],
        "branch": branch_of(workspace.run_id),
        "commit": commit,
        "tree": workspace.snapshot.tree,
        "committed": committed(workspace.project, commit),
        "inputs": [{"path": one.path, "sha256": one.sha256, "kept_by": one.kept_by} for one in workspace.inputs],
        "code_sha256": code_digest(root / "components") if (root / "components").is_dir() else code_digest(),
        "packages_sha256": sha256_json({**pinned, "python": platform.python_version()}),
        "checkpoint_sha256": sha256_tree(workspace.layout.train_checkpoint),
        "outputs": outputs(root),
    }


def committed(project: Path, commit: str) -> bool:
    """Whether the commit is not a snapshot and HEAD, a tag or a branch contains it; branches of runs do not count."""
    author = git(project, "log", "-1", "--format=%ae", commit)
    if author == SNAPSHOT_IDENTITY["GIT_AUTHOR_EMAIL"]:
        return False
    if succeeds(project, "merge-base", "--is-ancestor", commit, "HEAD"):
        return True
    named = ("refs/heads", "refs/remotes", "refs/tags")
    found = git(project, "for-each-ref", "--format=%(refname)", f"--contains={commit}", *named)
    return any("/runs/" not in name for name in found.splitlines())


def outputs(root: Path) -> dict[str, str]:
    """Output -> MD5 as DVC counts it, of everything that `dvc.lock` names and that is there."""
    paths = [path for outs in locked_in(root).values() for path in outs]
    return {path: md5_path(root / path) for path in paths if (root / path).exists()}


def changed_outputs(root: Path) -> list[str]:
    """The outputs that `dvc.lock` names and that are missing, or have other content than it records."""
    found = outputs(root)
    return sorted(path for outs in locked_in(root).values() for path, md5 in outs.items() if found.get(path) != md5)


def md5_path(path: Path) -> str:
    """MD5 of a file, or of a folder's listing, which ends with `.dir`."""
    with os_errors("read", path):
        if not path.is_dir():
            with path.open("rb") as file:
                return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        files = {below.relative_to(path).as_posix(): below for below in path.rglob("*") if below.is_file()}
    listing = [{"md5": md5_path(files[name]), "relpath": name} for name in sorted(files)]
    return hashlib.md5(json.dumps(listing, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"


def note_starter(workspace: Workspace, flow_run_id: str | None, deployed: bool) -> None:
    """Add the present user to those who worked on the run before. Call it with the workspace held."""
    names = _of_flow_run(flow_run_id) if deployed and flow_run_id else local_identity(workspace.project)
    before = starters(workspace)
    if not names or before == []:
        write_json(_path(workspace), [])
    else:
        write_json(_path(workspace), sorted({*(before or ()), *names}))


def starters(workspace: Workspace) -> list[str] | None:
    """The names of all who started or continued the run; empty where one is not known, None before the first."""
    path = _path(workspace)
    return [str(name) for name in read_json(path)] if path.exists() else None


def _path(workspace: Workspace) -> Path:
    return workspace.layout.state / FILE


def local_identity(project: Path) -> list[str]:
    """Name and e-mail address that Git is configured with, and the login."""
    found = []
    for key in ("user.name", "user.email"):
        with suppress(InputError):  # not configured
            found.append(git(project, "config", "--get", key))
    with suppress(OSError, KeyError, ImportError):  # a user without a name, as in a container
        found.append(getpass.getuser())
    return list(dict.fromkeys(name.strip() for name in found if name.strip()))


def _of_flow_run(flow_run_id: str) -> Sequence[str] | None:
    """The creator that Prefect recorded for the flow run; None where it recorded none."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        made = client.read_flow_run(UUID(flow_run_id))
        by = made.created_by
        if by is None or not by.display_value:
            return None
        if by.type == "SCHEDULE" and made.deployment_id:
            return [f"schedule:{client.read_deployment(made.deployment_id).name}"]
    return [str(by.display_value)]


def propose_run(workspace: Workspace, warn: Callable[[str], None]) -> str:
    """Store the checkpoint with its evidence; returns its digest. Proposing twice changes nothing, unless its record or
    its evidence in the registry is damaged or unsigned: the messages of `components.gate.checks` advise it then.

    Args:
        warn: receives what is left out, and that the checkpoint is unsigned.

    Raises:
        NoCandidate: the gate failed.
        InputError: the checkpoint is refused or cannot be stored.
    """
    layout, evidence, lineage = workspace.layout, workspace.layout.state / "evidence", trace(workspace)
    origin = {name: lineage[name] for name in ("run", "commit", "tree", "started_by")}
    omitted = gather(layout, lineage, evidence)
    key = signing_key(workspace.project, load_policy(workspace.project))
    if omitted:
        warn(f"too large to be kept with the candidate: {', '.join(sorted(omitted))}")
    if key is None:
        warn("the checkpoint is not signed: no key of a signer that the policy lists is here")
    store = project_store(workspace.project, workspace.settings)
    with working("copying the checkpoint to the registry"):
        digest = propose(store, layout.train_checkpoint, evidence, read_json(layout.gate), origin, key=key).digest
    shutil.rmtree(evidence)
    return digest
