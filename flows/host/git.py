"""What a run needs of Git: its exact code recorded as a commit, without touching the user's branch or index.

By the `git` command, which honours the user's settings, hooks and credentials; libraries call it too, or lack these.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from components.attempts import Attempts
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
RECORD = "run.json"
"""The record of a run, in its workspace and on its branch."""
NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
EVERYTHING = ("--", ".", ":!dvc.lock")
"""`dvc.lock` is written by runs: it is a result, not an input."""
OVERTAKEN = "unable to create temporary file: No such file or directory"
"""What Git says where `git gc` has removed an empty folder of objects that Git was about to write to."""
LARGEST_UNTRACKED = 50 * 2**20
"""Bytes. Larger files are data; a snapshot must not copy them into Git."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A commit that holds the code of a run; ``clean`` when it is an ordinary commit of the user's."""

    commit: str
    tree: str
    clean: bool


def git(
    directory: Path,
    *arguments: str,
    extra: Mapping[str, str] | None = None,
    stdin: str = "",
    timeout: float | None = None,
) -> str:
    """Run Git in ``directory`` for ``timeout`` seconds at most; return what it printed, without the last line break.

    A command that `git gc` has overtaken is run again: objects are named by their content, and no reference has moved.
    ``extra`` are more variables of its environment.

    Raises:
        InputError: Git is missing, refused, or took too long.
    """
    env = {key: value for key, value in os.environ.items() if key not in LOCATION_VARIABLES}
    env |= {"LC_ALL": "C", **(extra or {})}
    run = partial(subprocess.run, ["git", *arguments], cwd=directory, env=env, input=stdin, timeout=timeout)
    as_text = {"text": True, "errors": "surrogateescape"}  # names and contents of files may be of any encoding
    attempts = Attempts(0.01, 0.1, most=5)
    try:
        while (done := run(capture_output=True, **as_text)).returncode:
            if OVERTAKEN not in done.stderr or not attempts.again():
                done.check_returncode()
    except subprocess.TimeoutExpired as error:
        how = "see by hand what it waits for"
        raise InputError(f"git {_command(arguments)}: no answer in {timeout:g} s", where=directory, how=how) from error
    except FileNotFoundError as error:
        raise InputError("Git is not installed", how="install git; runs are recorded as commits") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().removeprefix("fatal: ") or f"exit code {error.returncode}"
        how = "run `evenkeel doctor`"
        raise InputError(f"git {_command(arguments)}: {said}", where=directory, how=how) from error
    return done.stdout.rstrip("\n")


def _command(arguments: tuple[str, ...]) -> str:
    return next(word for word in arguments if word != "-c" and "=" not in word)


def resolve(directory: Path, name: str) -> str | None:
    """The object that a name stands for in this repository; None where it stands for none."""
    try:
        return git(directory, "rev-parse", "--verify", "--quiet", name)
    except InputError:
        return None


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

    What a run recorded on top of its code is no code: on its branch the same command is the same run.

    The commit is made with an index of its own: the user's index, branch and stash stay as they are.

    Raises:
        InputError: a large file is neither tracked nor ignored.
    """
    head = code_at(project, "HEAD") if resolve(project, "HEAD") else None
    base, results = _recorded_on(project, "HEAD") if head else ("", [])
    others = (f":(exclude,literal){name}" for name in results)
    if head and not git(project, "status", "--porcelain", "--untracked-files=all", *EVERYTHING, *others):
        return head
    _refuse_large_files(project)
    tree = write_tree(project, head.tree if head else None, _as_before(project, base, results), add=EVERYTHING)
    return _committed(project, tree, head.commit if head else None)


def write_tree(project: Path, base: str | None, entries: str, *, add: Sequence[str] = ()) -> str:
    """A tree made with an index of its own: the user's stays as it is.

    Args:
        base: the commit or tree that it begins with.
        entries: what is laid over it at last, as `git update-index -z --index-info` reads it.
        add: paths of the working tree that are added in between.
    """
    with tempfile.TemporaryDirectory() as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        if base:
            git(project, "read-tree", base, extra=index)
        if add:
            git(project, "add", "--all", *add, extra=index)
        git(project, "update-index", "-z", "--index-info", extra=index, stdin=entries)
        return git(project, "write-tree", extra=index)


def _committed(project: Path, tree: str, parent: str | None) -> Snapshot:
    parents = ("-p", parent) if parent else ()
    commit = git(project, "commit-tree", tree, *parents, "-m", "evenkeel: snapshot of a run", extra=SNAPSHOT_IDENTITY)
    return Snapshot(commit, tree, clean=False)


def code_at(project: Path, revision: str) -> Snapshot:
    """The code of an existing commit: where a run has recorded its results on top of it, without these.

    Raises:
        InputError: there is no such commit, or that beneath a run's results is not here.
    """
    taken = at_commit(project, revision)
    base, results = _recorded_on(project, taken.commit)
    if not results:
        return taken
    tree = write_tree(project, taken.commit, _as_before(project, base, results))
    if tree == git(project, "rev-parse", f"{base}^{{tree}}"):
        return Snapshot(base, tree, clean=False)
    return _committed(project, tree, taken.commit)


def _as_before(project: Path, base: str, names: list[str]) -> str:
    """Entries of an index that make these files what they are in the commit ``base``; those that it has not go."""
    if not names:
        return ""
    before = git(project, "ls-tree", "-r", "-z", "--full-tree", base).split("\0")
    kept = [line for line in before if line.partition("\t")[2] in names]
    gone = [f"0 {'0' * len(base)}\t{name}" for name in names]
    return "\0".join([*gone, *kept, ""])


def record_at(project: Path, commit: str) -> dict[str, Any]:
    """The record of a run that a commit holds, unchecked; empty where it holds none."""
    try:
        found = json.loads(git(project, "show", f"{commit}:{RECORD}"))
    except (InputError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _recorded_on(project: Path, commit: str) -> tuple[str, list[str]]:
    """The code that a run was made of and what it recorded on top of that, where the commit holds a run's record."""
    base = str(record_at(project, commit).get("commit", ""))
    if not base:
        return "", []
    if not succeeds(project, "cat-file", "-e", f"{base}^{{commit}}"):
        how = "fetch all of it: git fetch --unshallow"
        raise InputError(f"the code beneath the results of a run is not here (commit {base})", where=project, how=how)
    last = git(project, "log", "-1", "--format=%H", commit, "--", RECORD)
    return base, git(project, "diff-tree", "-r", "-z", "--name-only", base, last).strip("\0").split("\0")


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


def holds(project: Path, commit: str, path: str) -> bool:
    """Whether the commit has the file or the folder just as it is now, with everything that lies in it."""
    listed = git(project, "ls-tree", "-r", "-z", "--full-tree", commit, "--", path).split("\0")
    there = {name: head.split()[2] for head, _, name in (line.partition("\t") for line in listed) if name}
    files = [one for one in (project / path).rglob("*") if not one.is_dir()] if (project / path).is_dir() else []
    names = [one.relative_to(project).as_posix() for one in files] or [path]
    if set(names) != set(there):
        return False
    found = git(project, "hash-object", "--stdin-paths", stdin="".join(f"{name}\n" for name in names)).splitlines()
    return found == [there[name] for name in names]


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
