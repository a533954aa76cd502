"""Where a candidate comes from: `lineage.json` in its evidence. The gate compares it with `dvc.lock`."""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from components.code_digest import code_digest
from components.config.documents import foreign
from components.files import dump_json, os_errors, read_text, sha256_bytes, sha256_tree
from flows.host.branches import branch_of
from flows.host.git import SNAPSHOT_IDENTITY, git, succeeds
from flows.recording.machine import packages
from flows.recording.starters import starters
from flows.run.workspace import Workspace

SCHEMA = 1


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
        "code_sha256": code_digest(root / "components"),
        "packages_sha256": sha256_bytes(dump_json({**pinned, "python": platform.python_version()}).encode()),
        "checkpoint_sha256": sha256_tree(workspace.layout.train_checkpoint),
        "outputs": outputs(root, workspace.layout.lock),
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


def outputs(root: Path, lock: Path) -> dict[str, str]:
    """Output -> MD5 as DVC counts it, of everything that `dvc.lock` names and that is there."""
    if not lock.is_file():
        return {}
    stages = (foreign(read_text(lock), lock) or {}).get("stages") or {}
    paths = [str(out["path"]) for stage in stages.values() for out in stage.get("outs") or []]
    return {path: md5_path(root / path) for path in paths if (root / path).exists()}


def md5_path(path: Path) -> str:
    """MD5 of a file, or of a folder's listing, which ends with `.dir`."""
    with os_errors("read", path):
        if not path.is_dir():
            with path.open("rb") as file:
                return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        files = {below.relative_to(path).as_posix(): below for below in path.rglob("*") if below.is_file()}
    listing = [{"md5": md5_path(files[name]), "relpath": name} for name in sorted(files)]
    return hashlib.md5(json.dumps(listing, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"
