"""The process of one flow run: ``python -m flows.serving.flow_run``, started by the worker in the project's folder.

With ``--standby`` it is started before there is a flow run (`flows.serving.standby`).

Prefect's own engine, with four differences. It dies with its worker: an unsupervised run stops, and the next worker
continues it. A scheduled run that starts too late is skipped. An expected failure, which is already the flow run's
state (`flows.prefect_runtime.states`), is logged without its stack. When the server becomes unreachable while the
engine starts or ends, the engine exits; it is started again once the server answers.
"""

from __future__ import annotations

import gc
import logging
import os
import runpy
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from components.errors import EvenkeelError
from components.processes.ranked import die_with_parent
from flows.serving.standby import COMMAND, FLOW_RUN, START_WITHIN, become_flow_run

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
