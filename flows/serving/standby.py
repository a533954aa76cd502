"""A process that has loaded what every flow run needs, before there is a flow run.

The worker (`flows.serving.worker`) starts ``python -m flows.serving.flow_run --standby`` and later sends it the
environment of a flow run, a line of JSON on standard input. From then on it is the process of that flow run. Where what
it has loaded is not what the flow run would load, because a file or a variable has changed, it replaces itself by a new
interpreter, which takes as long as without a standby process.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from components.loading import without_collection

COMMAND = [sys.executable, "-m", "flows.serving.flow_run"]
FLOW_RUN = "PREFECT__FLOW_RUN_ID"
START_WITHIN = "EVENKEEL_START_WITHIN"
"""Seconds after its time within which a scheduled run may start; without it, any time will do."""
NONE_YET = "0" * 36
"""In place of the id of the flow run, and as long."""
NEEDED = (
    "flows.post_training",
    "flows.promote",
    "flows.nightly",
    "prefect.flow_engine",
    "prefect.task_engine",
    "prefect._internal.control_listener",
    "prefect._internal.metrics",
    "anyio._backends._asyncio",
    "dvc.config",
)
"""The flows that run most often, what Prefect's engine imports for them, and what they import before their first
stage."""
OF_THE_RUN = "PREFECT__"
"""How the names of variables begin that are set for each flow run; with `START_WITHIN` they are read by the flow run
alone."""


def become_flow_run() -> None:
    """Load, wait for the environment of a flow run, and take it. The process ends where the worker has ended."""
    began, since = dict(os.environ), time.time_ns()
    with without_collection():
        for module in NEEDED:
            importlib.import_module(module)
    files = changes({file for one in list(sys.modules.values()) if (file := getattr(one, "__file__", None))})
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    env: dict[str, str] = json.loads(line)
    changed = changes(files) != files or max(files.values()) > since  # or while it was loaded
    if changed or lasting(env) != lasting(began):
        os.execve(COMMAND[0], COMMAND, env)
    show(FLOW_RUN, env[FLOW_RUN])
    os.environ.clear()
    os.environ.update(env)
    sys.modules.pop("prefect.engine", None)  # it is run as the main module


def changes(files: set[str] | Mapping[str, int]) -> dict[str, int]:
    """When each file was changed, in nanoseconds; -1 where it is not there any more."""
    found = dict.fromkeys(files, -1)
    for file in found:
        with suppress(OSError):
            found[file] = os.stat(file).st_mtime_ns
    return found


def lasting(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that may have been read while modules were loaded."""
    return {k: v for k, v in variables.items() if not k.startswith(OF_THE_RUN) and k != START_WITHIN}


def show(variable: str, value: str) -> None:
    """Let other processes see the value of a variable in this one's environment, as ``/proc/PID/environ`` has it.

    They see the memory that the process was started with. Setting a variable leaves that as it is, so this must come
    before the variable is set.

    Raises:
        ValueError: the process was started without the variable, or with a value of another length.
    """
    if len(os.environ.get(variable, "")) != len(value):
        raise ValueError(f"{variable}: no place for {value!r} in the environment of this process")
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    ctypes.memmove(library.getenv(variable.encode()), value.encode(), len(value))
