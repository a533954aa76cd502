"""`evenkeel cancel`: stops a run and every process of it.

A run that a worker started is cancelled through the Prefect server, which then shows it as cancelled; a run that was
started by hand gets a signal. A process that does not end in time is killed, and so are its leftovers.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

import psutil

from components.errors import InputError
from components.processes.living import alive
from flows.host.processes import end
from flows.prefect_runtime.server import CANCELLED, CANCELLING, UNDER_WAY, PrefectServer, ServerUnavailable
from flows.serving.service import served, wait_for
from flows.watching.execution import Execution, now, read, write
from flows.watching.runs import RunView

POLL = 0.2
KILL_GRACE = 10.0
"""Seconds that a killed process may take to be gone."""
WORKER_START = 20.0
"""Seconds after which a server that accepted the request but has no worker to carry it out is not waited for."""
WORKER_GRACE = 15.0
"""Seconds that a worker has to set the state to Cancelled: it checks every few seconds whether the run has ended."""
KILLED = "killed by `evenkeel cancel`"
Report = Callable[[str], object]


def cancel(run: RunView, grace: float, report: Report) -> None:
    """Stop it, and ``report`` every step. It has ``grace`` seconds to end by itself before it is killed.

    Raises:
        InputError: it does not run, or runs on another machine without a server in between.
    """
    execution = run.execution
    if execution is not None and execution.standing == "dead" and execution.deployed and execution.api:
        execution = _cancel_dead(run, execution, report)
        if execution is None:
            return
    if execution is None or not execution.alive:
        state = "no execution of it is recorded" if execution is None else f"it is {run.state}"
        how = "`evenkeel status` shows what runs"
        if run.state in ("stopped", "failed", "dead"):
            how = f"to continue it: evenkeel run --resume {run.run_id}; to end what dead runs left: evenkeel janitor"
        raise InputError(f"{run.run_id} does not run: {state}", where=run.root, how=how)
    _cancel_waiting(execution, report)
    requested = execution.deployed is not None and _request_cancellation(execution, report)
    if not execution.here:
        if not requested:
            how = f"`evenkeel cancel {run.run_id}` there"
            raise InputError(f"it runs on {execution.host}", where=run.root, how=how)
        report(f"it runs on {execution.host}: its worker there ends it")
        return
    _end_process(execution, grace, requested, report)
    left = end(one for one in run.processes() if one.pid != execution.pid)
    if left:
        report(f"ended what it left: {', '.join(map(str, left))}")
    if read(run.root) == execution:  # killed before it could write its end, and not started again
        write(run.root, replace(execution, state="stopped", ended=now(), reason=KILLED))
    _ensure_cancelled(execution, WORKER_GRACE if requested else 0, report)
    report(f"cancelled; to continue: evenkeel run --resume {run.run_id}")


def _end_process(execution: Execution, grace: float, requested: bool, report: Report) -> None:
    """SIGTERM, unless a worker that was ``requested`` to end it does; then SIGKILL."""
    began = time.monotonic()
    if not (requested and _wait_for_end(execution, min(grace, WORKER_START))):
        _send(execution, "terminate")
        report(f"{'no worker has ended it: ' if requested else ''}sent SIGTERM to process {execution.pid}")
    if not _wait_for_end(execution, grace - (time.monotonic() - began)):
        report(f"it did not end within {grace:g} s: killing process {execution.pid}")
        _send(execution, "kill")
        _wait_for_end(execution, KILL_GRACE)


def _cancel_dead(run: RunView, dead: Execution, report: Report) -> Execution | None:
    """Cancel the flow run of a process that is gone; otherwise a worker, or `serve` at its next start, would continue
    it. Returns the execution to stop; None where there is nothing left of it."""
    service = served(run.project)
    known = replace(dead, api=service.api_url) if service else dead  # a restarted server may have another port
    flow_run = str(known.deployed)
    try:
        with PrefectServer(known.api or "") as server:
            state = server.state_of(flow_run)
            if state not in UNDER_WAY:
                return dead
            _cancel_waiting(known, report)
            if state == "SCHEDULED":
                server.set_state(flow_run, CANCELLED, force=True)
    except ServerUnavailable as error:
        what = f"{run.run_id} is dead, but `evenkeel serve` goes on with it at its next start"
        how = f"the Prefect server {error.predicate}; start it, and cancel again"
        raise InputError(what, where=known.api, how=how) from error
    if state != "SCHEDULED" and _request_cancellation(known, report):
        _ensure_cancelled(known, WORKER_START, report)
    begun = read(run.root)
    if begun is not None and begun.alive:  # a worker was quicker
        return begun
    write(run.root, replace(dead, state="stopped", ended=now(), reason=KILLED))
    report(f"it was to be continued: cancelled flow run {flow_run}; to continue: evenkeel run --resume {run.run_id}")
    return None


def _cancel_waiting(execution: Execution, report: Report) -> None:
    """Cancel the other flow runs of the same run: the first of them would take the workspace over at once.

    A flow run that was started by hand cannot be ended from here; its name is reported.
    """
    if execution.api is None:
        return
    wanted = {"tags": {"all_": [execution.run_id]}, "state": {"type": {"any_": list(UNDER_WAY)}}}
    try:
        with PrefectServer(execution.api) as server:
            for other in list(server.flow_runs({"flow_runs": wanted})):
                if other["id"] in (execution.deployed, execution.flow_run):
                    continue
                named = f"flow run {other['name']}"
                if other["deployment_id"] is None:
                    report(f"{named} was started by hand and takes the run over: stop it where it runs")
                    continue
                scheduled = other["state_type"] == "SCHEDULED"
                server.set_state(other["id"], CANCELLED if scheduled else CANCELLING, force=scheduled)
                report(f"cancelled {named} too, which waited for the same run")
    except ServerUnavailable as error:
        report(f"whether other flow runs wait for this run is not known: the Prefect server {error.predicate}")


def _send(execution: Execution, how: str) -> None:
    """A signal to this very process: not to another that has its number by now."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(execution.pid)
        if alive(execution.pid, execution.created):
            getattr(process, how)()


def _wait_for_end(execution: Execution, seconds: float) -> bool:
    """Whether it ends within this time."""
    return wait_for(lambda: not alive(execution.pid, execution.created), seconds, pause=POLL)


def _request_cancellation(execution: Execution, report: Report) -> bool:
    """Request cancellation from the Prefect server; returns whether it accepted."""
    try:
        with PrefectServer(execution.api or "") as server:
            answer = server.set_state(str(execution.deployed), CANCELLING)
    except ServerUnavailable as error:
        report(f"the Prefect server at {execution.api} {error.predicate}")
        return False
    if answer != "ACCEPT":
        report(f"the Prefect server did not accept it ({answer.lower()})")
        return False
    report(f"requested cancellation of flow run {execution.deployed} from the Prefect server at {execution.api}")
    return True


def _ensure_cancelled(execution: Execution, patience: float, report: Report) -> None:
    """Set the flow run to Cancelled on its server, unless its worker does within ``patience`` seconds: a killed run
    cannot."""
    flow_run = execution.deployed or execution.flow_run
    if flow_run is None or execution.api is None:
        return
    try:
        with PrefectServer(execution.api) as server:
            if not wait_for(lambda: server.state_of(flow_run) == "CANCELLED", patience, pause=POLL):
                server.set_state(flow_run, CANCELLED, force=True)
    except ServerUnavailable as error:
        report(f"its state on the Prefect server was not changed: it {error.predicate}")
