"""The branch of a run, `runs/<run-id>`: its code, and on top of it what it was run with and what came out.

It is made of Git objects alone: the user's index, branch, working tree and hooks have no part in it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from components.errors import InputError
from flows.host.git import IDENTITY, NO_HOOKS, RECORD, git, record_at, resolve, succeeds, write_tree

WAIT_FOR_REFS = ("-c", "core.filesRefLockTimeout=10000", "-c", "core.packedRefsTimeout=10000")
"""Milliseconds to wait for another process's `git gc` or `git fetch`."""

PUSH_SECONDS = 300.0
"""After which a remote is taken not to answer: a branch is a few small files."""


def branch_of(run_id: str) -> str:
    return f"runs/{run_id}"


def head_of(project: Path, run_id: str) -> str | None:
    """The commit that the run's branch points at.

    Raises:
        InputError: the branch belongs to something else, or the name is not available.
    """
    name = branch_of(run_id)
    head = resolve(project, f"refs/heads/{name}")
    if head is None:
        if resolve(project, "refs/heads/runs"):
            how = "git branch -m runs another-name"
            raise InputError(f"a branch named `runs` leaves no room for {name}", where=project, how=how)
        return None
    if record_at(project, head).get("run_id") != run_id:
        how = f"git branch -m {name} another-name"
        raise InputError(f"the branch {name} holds something else than this run", where=project, how=how)
    return head


def commit_run(project: Path, run_id: str, base: str, root: Path, files: Sequence[str]) -> tuple[str, bool]:
    """Commit these files of the workspace ``root`` onto the run's branch, which begins at ``base``.

    Returns:
        The commit that holds the record, and whether it is a new one: a record that differs in nothing but its times is
        no reason for another.

    Raises:
        InputError: Git failed, the branch belongs to something else, or it is checked out somewhere.
    """
    head = head_of(project, run_id)
    paths = "".join(f"{root / name}\n" for name in files)  # laid over the code byte by byte, ignored or not
    blobs = git(project, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=paths).splitlines()
    entries = "".join(f"100644 {blob}\t{name}\0" for blob, name in zip(blobs, files, strict=True))
    tree = write_tree(project, base, entries)
    if head:
        changed = git(project, "diff-tree", "-r", "--name-only", head, tree).splitlines()
        if set(changed) <= {RECORD}:
            return head, False
    _refuse_checked_out(project, branch_of(run_id))
    message = f"evenkeel: record of run {run_id}"
    commit = git(project, "commit-tree", tree, "-p", head or base, "-m", message, extra=IDENTITY)
    ref = f"refs/heads/{branch_of(run_id)}"
    git(project, *NO_HOOKS, *WAIT_FOR_REFS, "update-ref", "-m", message, ref, commit, head or "0" * len(commit))
    return commit, True


def _refuse_checked_out(project: Path, branch: str) -> None:
    """Moving a branch that is checked out would make every file of that working tree look changed."""
    where = ""
    for line in git(project, "worktree", "list", "--porcelain").splitlines():
        if line.startswith("worktree "):
            where = line.removeprefix("worktree ")
        elif line == f"branch refs/heads/{branch}":
            how = f"git -C {where} checkout --detach, then `evenkeel run --resume {branch.removeprefix('runs/')}`"
            raise InputError(f"the branch {branch} is checked out, and is not moved under it", where=where, how=how)


def push_branch(project: Path, remote: str, run_id: str) -> None:
    """Push the run's branch. Never by force, and never asking for a password.

    Raises:
        InputError: the remote is not there, refuses, or does not answer.
    """
    ref = f"refs/heads/{branch_of(run_id)}"
    extra = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true"}  # which answers nothing
    chosen = any(name in os.environ for name in ("GIT_SSH", "GIT_SSH_COMMAND"))
    if not chosen and not succeeds(project, "config", "core.sshCommand"):
        extra["GIT_SSH_COMMAND"] = "ssh -oBatchMode=yes"
    git(project, *NO_HOOKS, "push", "--quiet", remote, f"{ref}:{ref}", extra=extra, timeout=PUSH_SECONDS)
