"""Approval requests, and the flow runs of the deployment `promote` on the Prefect server: which of them wait for a
person, and resuming them. Without importing Prefect, which takes seconds and would delay a decision at a terminal.

An approval applies to what was shown, whatever changes afterwards: a request is stored in the registry as
`requests/<digest>/<sha256>.json`, written once and named after its content. The suspended run knows it by the key of
its suspension alone, so that nothing has to survive in a process.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.config.promotion import Action
from components.errors import InputError
from components.files import dump_json, sha256_bytes
from components.registry import Store
from components.registry.candidates import digits
from components.registry.statements import Question
from flows.governance.registry import DEFAULT
from flows.prefect_runtime.server import PrefectServer, ServerUnavailable
from flows.serving.service import served

SCHEMA = 1
PREFIX = "requests/"
KEY = re.compile(r"promote-(?P<digest>[0-9a-f]{16})-(?P<request>[0-9a-f]{64})-(?P<round>[0-9]+)")


@dataclass(frozen=True, slots=True)
class Request:
    """An approval request. ``evidence`` and ``policy`` are digests, ``base`` is the number of the record that the
    champion stood on (0: none), ``gate`` is the sha256 of the gate's result, ``approved`` the number of approvals that
    counted, ``shown`` the Markdown above the form, and ``flow_run`` the run that sent the request.
    """

    digest: str
    evidence: str | None
    policy: str
    base: int
    gate: str | None
    approved: int
    shown: str
    flow_run: str
    schema: int = SCHEMA

    def to_bytes(self) -> bytes:
        return dump_json(asdict(self)).encode()

    @property
    def sha256(self) -> str:
        return sha256_bytes(self.to_bytes())

    @property
    def identity(self) -> tuple[object, ...]:
        """What distinguishes requests; neither the wording nor the round."""
        return self.digest, self.evidence, self.policy, self.base, self.gate, self.approved

    def question(self, action: Action, registry: str) -> Question:
        """What an answer is about, in the registry of this identity, where the request is kept."""
        gate = self.gate if action == "promote" else None
        return Question(action, self.digest, self.evidence, self.policy, self.base, registry, gate)

    def key(self, round: int) -> str:
        """Of the suspension. Prefect takes every key once in a run, so each ``round`` of asking has another."""
        return f"promote-{self.digest[:16]}-{self.sha256}-{round}"


def store_request(store: Store, request: Request) -> None:
    """Store the request before it is sent."""
    store.put_if_absent(_name(request.digest, request.sha256), request.to_bytes())


def load_request(store: Store, digest: str, sha256: str) -> Request:
    """The stored request about this candidate.

    Raises:
        InputError: it is not there, was changed, or is about another candidate.
    """
    name = _name(digest, sha256)
    stored = store.get(name)
    if stored is None or sha256_bytes(stored[0]) != sha256:
        what = "what was shown to the approver is no longer in the registry as it was"
        raise InputError(what, where=name, how="nothing was decided: approve again, or restore the registry")
    try:
        request = Request(**json.loads(stored[0]))
    except (ValueError, TypeError) as error:
        raise InputError(f"not a request: {error}", where=name, how="approve again") from error
    if request.digest != digest or request.schema != SCHEMA:
        raise InputError("a request about another candidate", where=name, how="approve again")
    return request


def _name(digest: str, sha256: str) -> str:
    return f"{PREFIX}{digest}/{sha256}.json"


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
