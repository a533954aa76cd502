"""Candidates that nobody was asked about, and questions that wait although they were answered elsewhere.

Events are not durable: one that is emitted while the server is down is lost, and with it the question. A run that
failed is begun again, for it may have an answer already, which another run would not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from components.config.promotion import load_policy
from components.errors import EvenkeelError, InputError
from components.registry import Candidate, candidates, read_history
from components.registry.candidates import PROPOSABLE
from flows.cleaning.action import CleanupAction
from flows.governance.policies import check_recorded
from flows.governance.registry import RegistryContext, decision_on
from flows.promoting.registries import DEFAULT, named_store
from flows.promoting.request import KEY, load_request
from flows.promoting.waiting_runs import DEPLOYMENT, LIVE, Run, resume_run, runs
from flows.watching.api import client, describe_error, json_of

REQUEST_TIMEOUT = 30.0
"""Seconds for one request: nobody waits for the answer, and nobody asks again for an hour."""
SETTLE = timedelta(minutes=1)
"""How long a run may take to put its form beside its state."""
REQUESTED = (*LIVE, "COMPLETED", "CANCELLED")
"""A run in such a state asks, has an answer, or was ended by a person, who is not asked again unasked."""
LIMIT = 20
"""New questions at a time: a server with a fresh database knows of none that was asked."""


def settle_requests(project: Path, api: str | None) -> Iterator[CleanupAction]:
    """Ask about candidates that passed, are undecided, and were never asked about; end questions that were answered.

    Args:
        api: the server of this project; without one nobody can be asked.
    """
    if api is None:
        return
    try:
        with client(api, REQUEST_TIMEOUT) as server:
            known = list(runs(server))
            for registry in dict.fromkeys([DEFAULT, *(run.registry for run in known)]):
                yield from _one(server, project, registry, [run for run in known if run.registry == registry])
    except httpx.HTTPError as error:
        yield CleanupAction("server", api, "left alone", f"it {describe_error(error)}")


def _one(server: httpx.Client, project: Path, registry: str, known: Sequence[Run]) -> Iterator[CleanupAction]:
    """One registry and the runs about its candidates."""
    try:
        store = named_store(project, registry)
        if not (found := candidates(store)):
            return
        context = RegistryContext(project, store, load_policy(project))
        check_recorded(
            project, context.policy
        )  # by one that is being edited nothing can be asked, and nothing answered
        undecided = [one for one in found if decision_on(context.store, one.digest) is None]
        yield from _resume_answered(server, context, found, known)
    except EvenkeelError as error:  # a bucket that does not answer, too: others may
        yield CleanupAction("candidate", registry, "left alone", error.what)
        return
    yield from _request_missing(server, registry, undecided, known)


def _resume_answered(
    server: httpx.Client, context: RegistryContext, found: Sequence[Candidate], known: Sequence[Run]
) -> Iterator[CleanupAction]:
    """Let runs go on that need not wait any more, or that ask what nobody can answer."""
    base = read_history(context.store).base
    for run in known:
        named = [one for one in found if run.about(one.digest, run.registry)]
        if not run.waits or datetime.now(UTC) - run.since < SETTLE or len(named) != 1:
            continue
        why = _resume_reason(context, named[0], run, base) or _without_form(server, run)
        if why and resume_run(server, run, why):
            yield CleanupAction("flow run", run.name, "resumed", why)


def _resume_reason(context: RegistryContext, candidate: Candidate, run: Run, base: int) -> str:
    """Why: it was decided elsewhere, or an answer would be one to a question that is not asked any more."""
    if decision_on(context.store, candidate.digest) is not None:
        return f"candidate {candidate.digest[:12]} was decided upon meanwhile"
    matched = KEY.fullmatch(run.key or "")
    if matched is None:
        return ""
    try:
        asked = load_request(context.store, candidate.digest, matched["request"])
    except InputError as error:
        return error.what
    now = {"policy": context.policy.sha256, "champion": base, "evidence": candidate.evidence}
    then = {"policy": asked.policy, "champion": asked.base, "evidence": asked.evidence}
    changed = [name for name in now if now[name] != then[name]]
    return f"since it was asked, another {' and '.join(changed)} came" if changed else ""


def _without_form(server: httpx.Client, run: Run) -> str:
    """Why: its process was killed before it could put a form beside its state."""
    if run.schema is None:
        return ""
    there = server.get(f"/flow_runs/{run.id}/input/{run.schema}").status_code
    return "its form was never stored" if there == httpx.codes.NOT_FOUND else ""


def _request_missing(
    server: httpx.Client, registry: str, undecided: Sequence[Candidate], known: Sequence[Run]
) -> Iterator[CleanupAction]:
    """For every candidate that passed and that no run asks, or asked, about, start one, or begin a failed one again."""
    wanted = []
    for candidate in undecided:
        about = [run for run in known if run.about(candidate.digest, registry) and not run.duplicate]
        if candidate.gate.get("result") in PROPOSABLE and not any(run.state in REQUESTED for run in about):
            wanted.append((candidate.digest, about))
    if not wanted:
        return
    answer = server.get(f"/deployments/name/{DEPLOYMENT}/{DEPLOYMENT}")
    if answer.status_code == httpx.codes.NOT_FOUND:  # a temporary server, say
        return
    deployment = json_of(answer)
    if deployment["paused"]:  # somebody does not want to be asked
        return
    for digest, failed in wanted[:LIMIT]:
        again = next((run for run in failed if resume_run(server, run, "it failed before anything was decided")), None)
        if again is not None:
            yield CleanupAction(
                "flow run", again.name, "begun again", f"it failed, and nobody else asks about {digest[:12]}"
            )
            continue
        name = _create_flow_run(server, deployment["id"], digest, registry, len(failed))
        yield CleanupAction("candidate", digest[:12], f"asked by flow run {name}", "no flow run was about it")


def _create_flow_run(server: httpx.Client, deployment: str, digest: str, registry: str, before: int) -> str:
    """Start the run; two who do so at once start one."""
    body: dict[str, Any] = {
        "parameters": {"digest": digest, "registry": registry},
        "state": {"type": "SCHEDULED"},
        "idempotency_key": f"ask-{digest}-{registry}-{before}",
    }
    return str(json_of(server.post(f"/deployments/{deployment}/create_flow_run", json=body))["name"])
