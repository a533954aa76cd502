"""Reschedules flow runs that lost their process, so that a worker continues them.

A flow run of the pool dies with its worker (`flow_run`), and Prefect does not notice: the run would stay Running for
ever. `reschedule` is called when the worker is known to be gone. The run is then scheduled again, starts from its first
line, and reuses its workspace: finished stages are cached, the interrupted one continues from its checkpoint. A run
whose cancellation was requested is cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from flows.prefect_runtime.server import PrefectServer
from flows.serving.options import POOL

UNDER_WAY = ("RUNNING", "PENDING", "CANCELLING")
ZOMBIE = "Its process gave no sign of life"
"""How the state message of a run begins that the server marked as crashed (`automations`)."""


def reschedule(server: PrefectServer, why: str, worker: str, crashed_since: datetime | None = None) -> list[str]:
    """Schedule every run again that ``worker`` had under way, now that it is gone; returns their names. Their state
    says ``why`` the worker ended.

    Args:
        crashed_since: a server that was off for a while marks all these runs as crashed when it starts; runs that it
            marked since this time are rescheduled too.

    Raises:
        ServerUnavailable: it does not answer, or refuses.
    """
    wanted = {
        "work_pools": {"name": {"any_": [POOL]}},
        "flow_runs": {"state": {"type": {"any_": [*UNDER_WAY, *(["CRASHED"] if crashed_since else [])]}}},
    }
    returned = []
    # A run that no worker has signed yet may be about to start at another one.
    workers = server.post(f"/work_pools/{POOL}/workers/filter", {})
    unsigned = "" if any(one["status"] == "ONLINE" and one["name"] != worker for one in workers) else worker
    for run in list(server.flow_runs(wanted)):
        if run["labels"].get("prefect.worker.name", unsigned) != worker:
            continue
        if run["state_type"] == "CRASHED" and not _taken_for_dead(run["state"], crashed_since):
            continue
        if run["state_type"] == "CANCELLING":
            state = {"type": "CANCELLED", "name": "Cancelled", "message": f"Cancelled; {why}."}
        else:
            state = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": f"To be continued: {why}."}
            returned.append(run["name"])
        server.set_state(run["id"], state, force=True)
    return returned


def _taken_for_dead(state: Mapping[str, Any], since: datetime | None) -> bool:
    at = datetime.fromisoformat(state["timestamp"])
    return since is not None and at >= since and str(state["message"]).startswith(ZOMBIE)
