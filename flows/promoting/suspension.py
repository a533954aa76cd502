"""Asks: keeps and shows the evidence, tells people, and suspends the flow run until one of them answers."""

from __future__ import annotations

from prefect import get_run_logger, suspend_flow_run
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import Pause

from components.errors import InputError
from components.registry import Candidate, Store, champion
from flows.governance.commands import SHORT
from flows.governance.registry import Desk
from flows.prefect_runtime import events
from flows.promoting.evidence import needs, shown
from flows.promoting.form import form
from flows.promoting.outcome import Open
from flows.promoting.pages import pages
from flows.promoting.report import report
from flows.promoting.request import Request, keep, recall
from flows.promoting.rounds import Rounds

ARTIFACT = "promotion-request"


def ask(desk: Desk, candidate: Candidate, found: Open, so_far: Rounds, me: FlowRun) -> None:
    """Suspend this flow run with the evidence and a form; does not return.

    Raises:
        InputError: Prefect let the run go on at once, as if this had been answered.
    """
    settings, present = desk.policy.settings, champion(desk.store)
    signed = settings.quorum("promote").signed
    text = shown(
        candidate,
        found.judgement,
        found.standing,
        settings,
        champion=f"{present.digest[:SHORT]} (record {present.record})" if present else "none yet",
        pages=pages(desk.project, desk.store, candidate.evidence, _report(desk, candidate, found)),
        note=found.note,
    )
    asked = found.standing.question
    request = Request(
        digest=asked.digest,
        evidence=asked.evidence,
        policy=asked.policy,
        base=asked.base,
        gate=asked.gate,
        approved=len(found.standing.counted),
        shown=text,
        flow_run=str(me.id),
    )
    keep(desk.store, request)
    create_markdown_artifact(text, key=ARTIFACT, description=f"Candidate {candidate.digest[:SHORT]}")
    if _is_news(desk.store, request, so_far):
        events.waiting(candidate.digest, str(candidate.run.get("run")), needs(found.standing, signed))
    wanted = needs(found.standing, signed)
    get_run_logger().info("%s: %s; Resume shows the evidence and asks", candidate.digest[:SHORT], wanted)
    kind = form(signed, found.judgement.result == "inconclusive", text)
    try:
        suspend_flow_run(wait_for_input=kind, key=request.key(so_far.asked + 1), timeout=None)
    except Pause:
        events.suspended(me.id)
        raise
    how = "start `promote` again for this candidate"
    raise InputError("Prefect took the question for one that was answered", where=str(me.id), how=how)


def _report(desk: Desk, candidate: Candidate, found: Open) -> str | None:
    """The page with what is known now; None, and the run's own is shown, where it cannot be made."""
    try:
        return report(desk, candidate, found.judgement)
    except InputError as error:
        get_run_logger().warning("the report is the run's own, without what is known since: %s", error)
        return None


def _is_news(store: Store, request: Request, so_far: Rounds) -> bool:
    """Whether something else is needed than last time: who answers wrongly, or not at all, tells nobody anything."""
    if so_far.last is None:
        return True
    try:
        before = recall(store, request.digest, so_far.last)
    except InputError:
        return True
    return request.matters != before.matters
