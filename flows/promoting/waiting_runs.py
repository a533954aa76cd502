"""Flow runs of the deployment `promote` on the Prefect server: which of them wait for a person, and resuming them.

Without importing Prefect, which takes seconds and would delay a decision at a terminal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.registry.candidates import digits
from flows.governance.registry import DEFAULT
from flows.prefect_runtime.server import PrefectServer, ServerUnavailable
from flows.serving.service import served

DEPLOYMENT = "promote"
DUPLICATE = "Asked"
"""The state of a run that sent no request, because another run does."""
LIVE = ("SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING")


@dataclass(frozen=True, slots=True)
class Run:
    """One flow run of the deployment, in a ``state`` of this type ``since`` then.

    ``schema`` is the key of its form on the server, and ``key`` that of its question, where it waits for an answer.
    A ``duplicate`` sent no request, because another run about the candidate does.
    """

    id: str
    name: str
    state: str
    since: datetime
    digest: str
    registry: str
    schema: str | None
    key: str | None
    duplicate: bool = False

    @property
    def waits(self) -> bool:
        """Suspended, until a person answers."""
        return self.state == "PAUSED"

    def about(self, digest: str, registry: str = DEFAULT) -> bool:
        """Whether it is about this candidate. A person may have started it with the first digits alone."""
        return bool(self.digest) and digest.startswith(self.digest) and self.registry == registry


def server_url(project: Path) -> str | None:
    """The server of this project, where one is up."""
    service = served(project)
    return os.environ.get("PREFECT_API_URL") or (service.api_url if service else None)


def runs(server: PrefectServer, *states: str) -> list[Run]:
    """Flow runs of the deployment in states of these types (any, where none is named), the latest ``since`` first.

    Raises:
        ServerUnavailable: it does not answer, or refuses.
    """
    wanted: dict[str, Any] = {"deployments": {"name": {"any_": [DEPLOYMENT]}}}
    if states:
        wanted["flow_runs"] = {"state": {"type": {"any_": list(states)}}}
    return sorted(map(_run, server.flow_runs(wanted)), key=lambda run: run.since, reverse=True)


def _run(row: dict[str, Any]) -> Run:
    parameters, state = row["parameters"], row["state"] or {}
    details = state.get("state_details") or {}
    return Run(
        id=row["id"],
        name=row["name"],
        state=row["state_type"],
        since=datetime.fromisoformat(state["timestamp"]) if state else datetime.now(UTC),
        digest=digits(str(parameters.get("digest", ""))),
        registry=str(parameters.get("registry", DEFAULT)),
        schema=(details.get("run_input_keyset") or {}).get("schema"),
        key=details.get("pause_key"),
        duplicate=state.get("name") == DUPLICATE,
    )


def resume_run(server: PrefectServer, run: Run, why: str) -> bool:
    """Start a suspended or failed run again from its first line; returns whether the server accepted.

    A suspended run continues without an answer: resuming it in Prefect's sense needs a filled-in form, which only a
    person may send. A run that failed after an answer still has it.

    Raises:
        ServerUnavailable: it does not answer, or refuses.
    """
    return server.set_state(run.id, {"type": "SCHEDULED", "name": "Resuming", "message": why}) == "ACCEPT"


def resume(project: Path, digest: str, why: str) -> list[str]:
    """Resume the runs that wait for a decision on this candidate; returns their names. Their state says ``why``.

    A server that is not up is no error: its run finds the decision when it next looks, at the latest when the janitor
    comes by.
    """
    api = server_url(project)
    if api is None:
        return []
    try:
        with PrefectServer(api) as server:
            waiting = [run for run in runs(server, "PAUSED") if run.about(digest, run.registry)]
            return [run.name for run in waiting if resume_run(server, run, why)]
    except ServerUnavailable:
        return []
