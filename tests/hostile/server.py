"""A process that has loaded what commands load, and forks for each case: ``python -m tests.hostile.server``.

It reads a JSON line a case (`Wanted`) and answers with one. It has no thread of its own when it forks.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import mmap
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TypedDict

import psutil

RUNAWAY = 4 * 2**30
"""Bytes of address space beyond the server's: whoever takes more is ended by a MemoryError, and not by the machine."""
LARGEST_FILE = 2**30


class Wanted(TypedDict):
    """One command."""

    program: str
    arguments: list[str]
    folder: str
    environment: dict[str, str]
    loads: list[str]
    said: str
    """The file that takes what it prints."""
    seconds: float


def evenkeel(arguments: list[str]) -> object:
    """The console script, which raises SystemExit."""
    from flows.cli import main

    sys.argv = ["evenkeel", *arguments]
    main()
    return 0


def components(arguments: list[str]) -> object:
    """``python -m components``."""
    from components.command import main

    return main(arguments)


def python(arguments: list[str]) -> object:
    """Code, for tests of this server."""
    exec(arguments[0])
    return 0


PROGRAMS: dict[str, Callable[[list[str]], object]] = {"evenkeel": evenkeel, "components": components, "python": python}


def answer(wanted: Wanted) -> dict[str, Any]:
    """Run a command in a forked process; says how that ended."""
    for name in wanted["loads"]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    began, before = time.monotonic(), mmap.mmap(-1, 8)  # which the two share
    child = os.fork()
    if child == 0:
        before.write(psutil.Process().memory_info().rss.to_bytes(8, "little"))
        run(wanted)
    handle = os.pidfd_open(child)
    ended, _, _ = select.select([handle], [], [], wanted["seconds"])
    seconds = time.monotonic() - began
    if not ended:
        os.kill(child, signal.SIGUSR1)  # where it is now
        select.select([handle], [], [], 1)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    os.close(handle)
    memory = used.ru_maxrss * 1024 - int.from_bytes(before[:], "little")
    before.close()
    return {"code": os.waitstatus_to_exitcode(status), "seconds": seconds, "memory": memory, "late": not ended}


def run(wanted: Wanted) -> None:
    """Be the command; never returns."""
    os.setsid()
    with open(wanted["said"], "wb", buffering=0) as said, open(os.devnull, "rb") as nothing:
        for source, target in ((nothing, 0), (said, 1), (said, 2)):
            os.dup2(source.fileno(), target)
    faulthandler.register(signal.SIGUSR1)
    space = psutil.Process().memory_info().vms + RUNAWAY
    for limit, value in ((resource.RLIMIT_AS, space), (resource.RLIMIT_FSIZE, LARGEST_FILE), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (value, value))
    os.environ.update(wanted["environment"])
    code = 1
    try:
        os.chdir(wanted["folder"])
        code = _code(PROGRAMS[wanted["program"]](wanted["arguments"]))
    except SystemExit as left:
        code = _code(left.code)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _code(returned: object) -> int:
    """The exit code that the interpreter makes of it."""
    if returned is None or isinstance(returned, int):
        return returned or 0
    print(returned, file=sys.stderr)
    return 1


def serve() -> None:
    """Answer until the standard input ends."""
    import flows.cli  # noqa: F401

    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what a module prints while it is loaded is no answer
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    serve()
