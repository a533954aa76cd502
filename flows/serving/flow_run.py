"""The process of one flow run: ``python -m flows.serving.flow_run``, started by the worker in the project's folder.

With ``--standby`` it loads what every flow run needs before there is one. The worker (`flows.serving.worker`) later
sends it the environment of a flow run, a line of JSON on standard input. From then on it is the process of that flow
run. Where what it has loaded is not what the flow run would load, because a file or a variable has changed, it replaces
itself by a new interpreter, which takes as long as without a standby process.

Prefect's own engine, with four differences. It dies with its worker: an unsupervised run stops, and the next worker
continues it. A scheduled run that starts too late is skipped. An expected failure, which is already the flow run's
state (`flows.prefect_runtime.states`), is logged without its stack. When the server becomes unreachable while the
engine starts or ends, the engine exits; it is started again once the server answers.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import logging
import os
import runpy
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from components.errors import EvenkeelError
from components.loading import without_collection
from components.processes.ranked import die_with_parent

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


if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

STARTS = "EVENKEEL_FLOW_RUN_STARTS"
"""How often the engine was started again in this process."""
MOST_STARTS = 5
PATIENCE = 300.0
"""Seconds that a server may be unreachable."""
UNDER_WAY = ("PENDING", "RUNNING")


def read_flow_run(flow_run: str) -> FlowRun:
    """The flow run as the server has it; waits up to `PATIENCE` seconds for an unreachable server.

    Raises:
        httpx.HTTPError, RuntimeError: it does not answer. RuntimeError is Prefect's own.
    """
    from httpx import HTTPError
    from prefect.client.orchestration import get_client

    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            with get_client(sync_client=True) as client:
                return client.read_flow_run(flow_run)  # type: ignore[arg-type]  # it takes the text as well
        except (HTTPError, RuntimeError):
            if time.monotonic() > give_up:
                raise
            time.sleep(1)


def skip_if_late(flow_run: str, seconds: float) -> bool:
    """Whether this is the late first start of a scheduled run; then the run is cancelled with the reason."""
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelled

    found = read_flow_run(flow_run)
    due = found.expected_start_time
    if not found.auto_scheduled or found.run_count or due is None:
        return False
    late = (datetime.now(UTC) - due).total_seconds()
    if late <= seconds:
        return False
    message = f"Skipped: it was due at {due:%Y-%m-%d %H:%M} UTC, {late / 60:.0f} minutes ago."
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(found.id, Cancelled(name="Skipped", message=message), force=True)
    return True


def is_under_way(flow_run: str) -> bool:
    """Whether the server has it pending or running: after the engine has ended, that it could not report its end."""
    state = read_flow_run(flow_run).state
    return state is not None and state.type.value in UNDER_WAY


def unexpected(record: logging.LogRecord) -> bool:
    """Whether a line of the engine's log adds something to the state of the flow run."""
    return not (record.exc_info and isinstance(record.exc_info[1], EvenkeelError))


def main() -> None:
    die_with_parent()  # the worker
    if "--standby" in sys.argv:
        become_flow_run()
    gc.set_threshold(100_000)  # loading Prefect makes much that stays: to look through it took a fifth of the time
    for logger in ("prefect.engine", "prefect.flow_runs"):
        logging.getLogger(logger).addFilter(unexpected)
    if START_WITHIN in os.environ and skip_if_late(os.environ[FLOW_RUN], float(os.environ[START_WITHIN])):
        return
    sys.argv = ["prefect.engine"]
    try:
        runpy.run_module("prefect.engine", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        starts = int(os.environ.get(STARTS, "0"))
        if ended.code != 1 or starts >= MOST_STARTS or not is_under_way(os.environ[FLOW_RUN]):
            raise
        os.environ[STARTS] = str(starts + 1)
        os.execv(COMMAND[0], COMMAND)


if __name__ == "__main__":
    main()
