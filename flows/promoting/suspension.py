"""Requests approval: stores and shows the evidence, notifies people, and suspends the flow run until one answers."""

from __future__ import annotations

from prefect import get_run_logger, suspend_flow_run
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import Pause

from components.errors import CorrectableError, InputError
from components.registry import Candidate, Store, champion
from flows.governance.commands import SHORT, DecisionCommands
from flows.governance.registry import RegistryContext
from flows.prefect_runtime import events
from flows.promoting.evidence import approvals_needed, request_page
from flows.promoting.form import form
from flows.promoting.outcome import Undecided
from flows.promoting.report import pages, report
from flows.promoting.request import Request, load_request, store_request
from flows.promoting.rounds import Rounds

ARTIFACT = "promotion-request"


def request_approval(
    context: RegistryContext, candidate: Candidate, found: Undecided, so_far: Rounds, me: FlowRun
) -> None:
    """Suspend this flow run with the evidence and a form; does not return.

    Raises:
        InputError: Prefect let the run go on at once, as if this had been answered.
    """
    lines, present = DecisionCommands.of(context), champion(context.store)
    signed, doubtful = lines.policy.quorum("promote").signed, found.judgement.result == "inconclusive"
    text = request_page(
        candidate,
        found.judgement,
        found.standing,
        lines,
        champion=f"{present.digest[:SHORT]} (record {present.record})" if present else "none yet",
        pages=pages(context.project, context.store, candidate.evidence, _report(context, candidate, found)),
        note=found.note,
    )
    question = found.standing.question
    request = Request(
        digest=question.digest,
        evidence=question.evidence,
        policy=question.policy,
        base=question.base,
        gate=question.gate,
        approved=len(found.standing.counted),
        shown=text,
        flow_run=str(me.id),
    )
    store_request(context.store, request)
    create_markdown_artifact(text, key=ARTIFACT, description=f"Candidate {candidate.digest[:SHORT]}")
    wanted = approvals_needed(found.standing, signed)
    if _is_news(context.store, request, so_far):
        decide = lines.approve(candidate.digest, doubtful=doubtful)
        events.waiting(candidate.digest, str(candidate.run.get("run")), wanted, decide)
    get_run_logger().info("%s: %s; Resume shows the evidence and asks", candidate.digest[:SHORT], wanted)
    kind = form(signed, doubtful, text)
    try:
        suspend_flow_run(wait_for_input=kind, key=request.key(so_far.asked + 1), timeout=None)
    except Pause:
        events.suspended(me.id)
        raise
    how = "start `promote` again for this candidate"
    raise InputError("Prefect took the question for one that was answered", where=str(me.id), how=how)


def _report(context: RegistryContext, candidate: Candidate, found: Undecided) -> str | None:
    """The page with what is known now; None, and the run's own is shown, where it cannot be made."""
    try:
        return report(context, candidate, found.judgement)
    except CorrectableError as error:
        get_run_logger().warning("the report is the run's own, without what is known since: %s", error)
        return None


def _is_news(store: Store, request: Request, so_far: Rounds) -> bool:
    """Whether the request differs from the last one: a wrong or missing answer sends no second notification."""
    if so_far.last is None:
        return True
    try:
        before = load_request(store, request.digest, so_far.last)
    except InputError:
        return True
    return request.identity != before.identity
