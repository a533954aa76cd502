"""What a run needs of DVC besides its stages: commands, remotes, the settings of a workspace, and who holds a lock.

By its command line, in a process of its own: DVC promises no stable interface in Python, and changes the process that
imports it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from components.config.documents import foreign
from components.errors import InputError
from components.files import flushed, os_errors, read_text
from components.processes.living import lives
from components.working import working
from flows.host.dvc_process import run_dvc
from flows.host.git import LOCATION_VARIABLES

COPIES = ("reflink", "copy")
"""How files come from the cache into a workspace. Not by symbolic links: digests of folders refuse them."""
LINKS = ("reflink", "hardlink", "copy")
"""The same for inputs, which may be gigabytes and are never written to."""
BUSY = ("is busy, it is being blocked by", "Unable to acquire lock")
"""DVC's messages when another process holds a lock that it needs."""


def environment(project: Path) -> dict[str, str]:
    """The environment of DVC and of what it starts: this Python first on the path, no analytics, shared bookkeeping."""
    inherited = {k: v for k, v in os.environ.items() if k not in (*LOCATION_VARIABLES, "PYTHONSAFEPATH")}
    return {
        **inherited,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(project / ".state" / "dvc"),
    }


def dvc(root: Path, project: Path, *arguments: str, log: Path, how: str) -> None:
    """Run a DVC command in the DVC repository ``root`` of ``project``, its output appended to ``log``.

    Raises:
        InputError: DVC refused; the message is its last word.
    """
    repair_rwlock(root)
    start = log.stat().st_size if log.exists() else 0
    with working(f"dvc {arguments[0]}"):
        code = run_dvc(arguments, root=root, env=environment(project), log=log)
    if code:
        raise InputError(f"dvc {arguments[0]}: {last_error(log, start)}", where=root, how=f"{how} (log: {log})")


def last_error(log: Path, start: int) -> str:
    """What DVC gave as the reason in the part of its log that begins at byte ``start``."""
    lines = log_since(log, start).splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return errors[-1] if errors else "it ended without a message"


def log_since(log: Path, start: int) -> str:
    """The part of a log that begins at byte ``start``."""
    return log.read_bytes()[start:].decode(errors="replace") if log.exists() else ""


def default_remote(project: Path) -> str | None:
    """The name of the remote that `dvc push` uses in this project, if there is one.

    Raises:
        InputError: DVC's configuration cannot be read.
    """
    name = _settings(project, "system", "global", "repo", "local").get("core", {}).get("remote")
    return str(name) if name else None


def configure(root: Path, project: Path, *, link_types: tuple[str, ...] = COPIES) -> None:
    """Give the DVC repository ``root`` the cache and the remotes of ``project``, relative paths made absolute.

    They go to the file that Git ignores, readable by its owner alone: a remote's settings may hold a password.

    Raises:
        InputError: DVC's configuration cannot be read, or the file cannot be written.
    """
    from configobj import ConfigObj  # a dependency of DVC, which is not imported before it is needed

    found = _settings(project, "repo", "local")
    chosen = _as_list(found.get("cache", {}).get("type")) if link_types == COPIES else link_types
    types = [kind for kind in chosen if kind != "symlink"] or list(COPIES)
    cache = {"dir": str(project / ".dvc" / "cache"), **found.get("cache", {}), "type": types}
    remotes = {f'remote "{name}"': dict(values) for name, values in found.get("remote", {}).items()}
    sections = {"core": dict(found.get("core", {})), "cache": cache, **remotes}
    lines = ConfigObj({name: values for name, values in sections.items() if values}).write()
    local = root / ".dvc" / "config.local"
    with flushed(local, ("\n".join(lines) + "\n").encode(), mode=0o600) as name:
        os.replace(name, local)


def _settings(project: Path, *levels: str) -> dict[str, Any]:
    from dvc.config import Config, ConfigError, merge

    folder = project / ".dvc"
    try:
        config = Config(str(folder), validate=True)
        merged: dict[str, Any] = {}
        for level in levels:
            merge(merged, config.load_one(level))
    except ConfigError as error:
        raise InputError(f"DVC's configuration cannot be read: {error}", where=folder, how="fix that file") from error
    return merged


def _as_list(value: str | list[str] | None) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value or []
    return tuple(word.strip() for word in words)


def declared(stage: Mapping[str, Any], *kinds: str) -> list[str]:
    """Files and folders that a stage of `dvc.yaml` names under these keys (``deps``, ``outs``, ``metrics``, ...)."""
    entries = [entry for kind in kinds for entry in stage.get(kind, [])]
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


@functools.lru_cache(maxsize=2)  # thousands of lines, and a run reads them several times
def locked(lock: str) -> Mapping[str, Mapping[str, str]]:
    """Stage -> output -> MD5, of the text of a `dvc.lock`."""
    stages = (foreign(lock, "dvc.lock") or {}).get("stages") or {}
    return {
        name: {str(out["path"]): str(out.get("md5", "")) for out in stage.get("outs") or []}
        for name, stage in stages.items()
    }


def locked_in(root: Path) -> Mapping[str, Mapping[str, str]]:
    """The same, of the `dvc.lock` of the DVC repository ``root``; empty where it has none."""
    path = root / "dvc.lock"
    return locked(read_text(path)) if path.exists() else {}


def busy(log: Path, start: int) -> bool:
    """Whether DVC gave up because another process holds what it needs, by what it said from byte ``start`` on."""
    text = log_since(log, start)
    return any(words in text for words in BUSY)


def holder(root: Path) -> str | None:
    """A description of the process that holds a lock of the DVC repository ``root``; None where it is free."""
    if pids := rwlock_holders(root):
        return describe(pids[0])
    path = root / ".dvc" / "tmp" / "lock"
    with contextlib.suppress(FileNotFoundError), path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # let go at once
        except BlockingIOError:
            word = file.read().strip()
            return describe(int(word)) if word.isdigit() else "another process"
    return None


def rwlock_holders(root: Path) -> list[int]:
    """The living processes that DVC has written down as readers or writers of outputs."""
    path = root / ".dvc" / "tmp" / "rwlock"
    try:
        entries = json.loads(path.read_text(encoding="utf-8") or "{}").values()
    except (FileNotFoundError, json.JSONDecodeError):
        return []
    holders = [held for entry in entries for held in entry.values()]
    found = [one for held in holders for one in (held if isinstance(held, list) else [held])]
    return sorted(pid for pid in {int(one["pid"]) for one in found if "pid" in one} if lives(pid))


def repair_rwlock(root: Path) -> None:
    """Remove DVC's list of readers and writers in ``root`` where a process that was killed while it wrote left a torn
    one: DVC would refuse every command from then on. Those that it named hold nothing any more, or are dead."""
    path = root / ".dvc" / "tmp" / "rwlock"
    if not path.is_file():
        return
    with os_errors("repair", path), path.with_name("rwlock.lock").open("a") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # as DVC does around every change of the list
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            path.unlink()


def describe(pid: int) -> str:
    """A process by its number and its command line."""
    try:
        command = " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return f"process {pid}"
    return f"process {pid} ({command[:80]})" if command else f"process {pid}"
