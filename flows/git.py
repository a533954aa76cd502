"""What a run needs of Git: its exact code recorded as a commit, without touching the user's branch or index."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from components.errors import InputError

LOCATION_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
)
"""Set inside Git hooks; they would point every command at another repository."""
IDENTITY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "evenkeel"), ("EMAIL", "evenkeel@localhost"))
}
SNAPSHOT_IDENTITY = IDENTITY | {f"GIT_{role}_DATE": "2000-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
"""Fixed, so that equal trees on equal parents give equal commits."""
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
EVERYTHING = ("--", ".", ":!dvc.lock")
"""`dvc.lock` is written by runs: it is a result, not an input."""
LARGEST_UNTRACKED = 50 * 2**20
"""Bytes. Larger files are data; a snapshot must not copy them into Git."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit that holds the code of a run; ``clean`` when it is an ordinary commit of the user's."""

    commit: str
    tree: str
    clean: bool


def git(directory: Path, *arguments: str, extra: Mapping[str, str] | None = None, stdin: str = "") -> str:
    """Run Git in ``directory`` and return what it printed, without the last line break.

    Args:
        extra: more variables of the environment.
        stdin: what it reads from its standard input.

    Raises:
        InputError: Git is missing or refused.
    """
    env = {key: value for key, value in os.environ.items() if key not in LOCATION_VARIABLES}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=directory,
            env={**env, "LC_ALL": "C", **(extra or {})},
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
    except FileNotFoundError as error:
        raise InputError("Git is not installed", how="install git; runs are recorded as commits") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().removeprefix("fatal: ") or f"exit code {error.returncode}"
        command = next(word for word in arguments if word != "-c" and "=" not in word)
        raise InputError(f"git {command}: {said}", where=directory, how="`evenkeel doctor` says more") from error
    return done.stdout.rstrip("\n")


def succeeds(directory: Path, *arguments: str) -> bool:
    """Whether a Git query answers yes."""
    try:
        git(directory, *arguments)
    except InputError:
        return False
    return True


def check_git_remote(project: Path, name: str) -> None:
    """Refuse the name of a Git remote that the project does not have; an empty one stands for none.

    Raises:
        InputError: it has no such remote.
    """
    remotes = git(project, "remote").split()
    if name and name not in remotes:
        there = f"name one of: {', '.join(remotes)}" if remotes else f"there is none yet: `git remote add {name} URL`"
        raise InputError(f"no Git remote named {name!r}", where="record.git_remote", how=there)


def project_root(start: Path) -> Path:
    """The top folder of the project around ``start``: a Git repository that holds `dvc.yaml`."""
    try:
        root = Path(git(start, "rev-parse", "--show-toplevel"))
    except InputError as error:
        how = "run inside a clone of the project, or `git init` in it"
        raise InputError(f"not a Git repository ({error.what})", where=start, how=how) from error
    if not (root / "dvc.yaml").is_file():
        raise InputError("no dvc.yaml at the top of this repository", where=root, how="run inside a clone of it")
    return root


def snapshot(project: Path) -> Snapshot:
    """HEAD where the working tree equals it, else a new commit of everything that Git does not ignore.

    The commit is made with an index of its own: the user's index, branch and stash stay as they are.

    Raises:
        InputError: a large file is neither tracked nor ignored.
    """
    has_head = succeeds(project, "rev-parse", "--verify", "--quiet", "HEAD")
    if has_head and not git(project, "status", "--porcelain", "--untracked-files=all", *EVERYTHING):
        return at_commit(project, "HEAD")
    _refuse_large_files(project)
    with tempfile.TemporaryDirectory() as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        if has_head:
            git(project, "read-tree", "HEAD", extra=index)
        git(project, "add", "--all", *EVERYTHING, extra=index)
        tree = git(project, "write-tree", extra=index)
    parent = ("-p", "HEAD") if has_head else ()
    commit = git(project, "commit-tree", tree, *parent, "-m", "evenkeel: snapshot of a run", extra=SNAPSHOT_IDENTITY)
    return Snapshot(commit, tree, clean=False)


def at_commit(project: Path, revision: str) -> Snapshot:
    """The snapshot of an existing commit."""
    commit = git(project, "rev-parse", "--verify", f"{revision}^{{commit}}")
    return Snapshot(commit, git(project, "rev-parse", f"{commit}^{{tree}}"), clean=True)


def _refuse_large_files(project: Path) -> None:
    for name in git(project, "ls-files", "-z", "--others", "--exclude-standard").split("\0"):
        path = project / name
        if name and path.is_file() and path.stat().st_size > LARGEST_UNTRACKED:
            raise InputError(
                f"a run would copy this file of {path.stat().st_size / 2**20:.0f} MiB into Git",
                where=path,
                how="add it to .gitignore (inputs are recorded by their digest), or track it with `dvc add`",
            )


def check_out(project: Path, commit: str, target: Path) -> None:
    """Fill the empty folder ``target`` with a repository at ``commit`` that borrows the project's objects.

    Like ``git clone --shared``, which however refuses to share with a shallow clone, as CI systems make them.
    """
    git(target, "init", "--quiet")
    common = (project / git(project, "rev-parse", "--git-common-dir")).resolve()
    (target / ".git/objects/info/alternates").write_text(f"{common / 'objects'}\n", encoding="utf-8")
    if (common / "shallow").exists():
        (target / ".git/shallow").write_bytes((common / "shallow").read_bytes())
    git(target, "remote", "add", "origin", str(project))
    git(target, *NO_HOOKS, "checkout", "--quiet", "--detach", commit)
