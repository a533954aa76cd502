"""Candidates without an approval request, and requests that wait although they were answered elsewhere.

Events are not durable: an event that is emitted while the server is down is lost, and with it the request. A failed run
is started again instead of replaced, because it may already have an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from components.config.promotion import load_policy
from components.errors import EvenkeelError, InputError
from components.registry import Candidate, candidates, read_history
from components.registry.candidates import PROPOSABLE
from flows.cleaning.leftovers import CleanupAction
from flows.governance.policies import check_recorded
from flows.governance.registry import DEFAULT, RegistryContext, decision_on, named_store
from flows.prefect_runtime.server import PrefectServer, ServerUnavailable
from flows.promoting.waiting_runs import DEPLOYMENT, KEY, LIVE, Run, load_request, resume_run, runs
from flows.watching.runs import all_runs

REQUEST_TIMEOUT = 30.0
"""Seconds for one HTTP request: generous, because the next attempt is an hour later."""
SETTLE = timedelta(minutes=1)
"""How long a run may take to store its form after its state."""
REQUESTED = (*LIVE, "COMPLETED", "CANCELLED")
"""States of a run that waits, has an answer, or was ended by a person: no second request is sent."""
LIMIT = 20
"""New requests at a time: a server with a fresh database knows no earlier ones."""


def settle_requests(project: Path, api: str | None) -> Iterator[CleanupAction]:
    """Request approval of undecided candidates that passed and have no request; resume runs whose request was answered.

    Without a server, whose address ``api`` is, nothing is done.
    """
    if api is None:
        return
    try:
        with PrefectServer(api, timeout=REQUEST_TIMEOUT) as server:
            known = runs(server)
            proposed = [run.registry for run in all_runs(project) if run.registry]
            for registry in dict.fromkeys([DEFAULT, *(run.registry for run in known), *proposed]):
                yield from _one(server, project, registry, [run for run in known if run.registry == registry])
    except ServerUnavailable as error:
        yield CleanupAction("server", api, "left alone", f"it {error.predicate}")


def _one(server: PrefectServer, project: Path, registry: str, known: Sequence[Run]) -> Iterator[CleanupAction]:
    """One registry and the runs about its candidates."""
    try:
        store = named_store(project, registry)
        if not (found := candidates(store)):
            return
        context = RegistryContext(project, store, load_policy(project))
        check_recorded(project, context.policy)  # with an uncommitted policy nothing can be decided
        undecided = [one for one in found if decision_on(context.store, one.digest) is None]
        yield from _resume_answered(server, context, found, known)
    except ServerUnavailable:
        raise
    except EvenkeelError as error:  # a bucket that does not answer, too: others may
        yield CleanupAction("candidate", registry, "left alone", error.what)
        return
    yield from _request_missing(server, registry, undecided, known)


def _resume_answered(
    server: PrefectServer, context: RegistryContext, found: Sequence[Candidate], known: Sequence[Run]
) -> Iterator[CleanupAction]:
    """Resume runs that need not wait any more, or whose request cannot be answered."""
    base = read_history(context.store).base
    for run in known:
        named = [one for one in found if run.about(one.digest, run.registry)]
        if not run.waits or datetime.now(UTC) - run.since < SETTLE or len(named) != 1:
            continue
        why = _resume_reason(context, named[0], run, base) or _without_form(server, run)
        if why and resume_run(server, run, why):
            yield CleanupAction("flow run", run.name, "resumed", why)


def _resume_reason(context: RegistryContext, candidate: Candidate, run: Run, base: int) -> str:
    """Why to resume a run: the candidate was decided elsewhere, or the request is outdated; else empty."""
    if decision_on(context.store, candidate.digest) is not None:
        return f"candidate {candidate.digest[:12]} was decided upon meanwhile"
    matched = KEY.fullmatch(run.key or "")
    if matched is None:
        return ""
    try:
        question = load_request(context.store, candidate.digest, matched["request"])
    except InputError as error:
        return error.what
    now = {"policy": context.policy.sha256, "champion": base, "evidence": candidate.evidence}
    then = {"policy": question.policy, "champion": question.base, "evidence": question.evidence}
    changed = [name for name in now if now[name] != then[name]]
    return f"since the request, the {' and '.join(changed)} changed" if changed else ""


def _without_form(server: PrefectServer, run: Run) -> str:
    """Why to resume a run: its process was killed before it stored its form; else empty."""
    if run.schema is None:
        return ""
    there = server.get(f"/flow_runs/{run.id}/input/{run.schema}")
    return "its form was never stored" if there is None else ""


def _request_missing(
    server: PrefectServer, registry: str, undecided: Sequence[Candidate], known: Sequence[Run]
) -> Iterator[CleanupAction]:
    """For every candidate that passed and has no request, start a run, or start a failed one again."""
    wanted = []
    for candidate in undecided:
        about = [run for run in known if run.about(candidate.digest, registry) and not run.duplicate]
        if candidate.gate.get("result") in PROPOSABLE and not any(run.state in REQUESTED for run in about):
            wanted.append((candidate.digest, about))
    if not wanted:
        return
    deployment = server.get(f"/deployments/name/{DEPLOYMENT}/{DEPLOYMENT}")
    if deployment is None or deployment["paused"]:  # a temporary server, say; or it was paused in the UI
        return
    create = f"/deployments/{deployment['id']}/create_flow_run"
    for digest, failed in wanted[:LIMIT]:
        again = next((run for run in failed if resume_run(server, run, "it failed before anything was decided")), None)
        if again is not None:
            why = f"it failed, and no other run is about {digest[:12]}"
            yield CleanupAction("flow run", again.name, "begun again", why)
            continue
        body: dict[str, Any] = {
            "parameters": {"digest": digest, "registry": registry},
            "state": {"type": "SCHEDULED"},
            "idempotency_key": f"ask-{digest}-{registry}-{len(failed)}",  # two who do this at once start one run
        }
        done = f"approval requested by flow run {server.post(create, body)['name']}"
        yield CleanupAction("candidate", digest[:12], done, "no flow run was about it")
