"""Requests approval: stores and shows the evidence, notifies people, and suspends the flow run until one answers.

What a person sees before deciding is Markdown, the same above the form and in the artifact `promotion-request`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prefect import get_run_logger, suspend_flow_run
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import Pause

from components.errors import CorrectableError, InputError
from components.health.summaries.markdown import plain
from components.registry import Candidate, Standing, Store, champion
from components.types import GateCheck, Judgement
from components.words import plural
from flows.governance.commands import SHORT, DecisionCommands
from flows.governance.registry import RegistryContext
from flows.prefect_runtime import states
from flows.promoting.answers import Undecided, form
from flows.promoting.report import pages, report
from flows.promoting.rounds import Rounds
from flows.promoting.waiting_runs import Request, load_request, store_request

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
        states.waiting(candidate.digest, str(candidate.run.get("run")), wanted, decide)
    get_run_logger().info("%s: %s; Resume shows the evidence and asks", candidate.digest[:SHORT], wanted)
    kind = form(signed, doubtful, text)
    try:
        suspend_flow_run(wait_for_input=kind, key=request.key(so_far.asked + 1), timeout=None)
    except Pause:
        states.suspended(me.id)
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


GROUPS = {"fail": "Failed", "inconclusive": "Left to you", "pass": "Passed"}
"""Results in the order in which they are shown, and what stands above them."""


def approvals_needed(standing: Standing, signed: bool) -> str:
    """The approvals that are needed, as text."""
    kind = "signed approval" if signed else "approval"
    if not standing.counted:
        return f"{plural(standing.missing, kind)} needed"
    return f"{plural(standing.missing, f'more {kind}')} needed; so far: {standing.by}"


def request_page(
    candidate: Candidate,
    judgement: Judgement,
    standing: Standing,
    lines: DecisionCommands,
    *,
    champion: str,
    pages: dict[str, str],
    note: str = "",
) -> str:
    """All of it.

    Args:
        champion: the present one, as text.
        pages: title -> address of the pages that belong to the evidence.
        note: why the request is repeated.
    """
    policy = lines.policy
    signed = policy.quorum("promote").signed
    parts = [
        *([f"> {plain(note)}"] if note else []),
        f"## {candidate.digest[:SHORT]} from {plain(str(candidate.run.get('run', 'an unknown run')))}",
        f"{_verdict(judgement)} Present champion: {plain(champion)}.",
        " | ".join(f"[{title}]({address})" for title, address in pages.items()),
        "\n".join(_approvals(standing, signed)),
        *checks_list(judgement.checks),
        *_how(candidate, lines, signed, judgement.result == "inconclusive"),
        _scope(candidate, judgement, policy.valid_days),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def outcome_page(candidate: Candidate, state: str, words: str, judgement: Judgement | None) -> str:
    """The outcome as Markdown, with the checks if they were made."""
    parts = [
        f"## {candidate.digest[:SHORT]} from {plain(str(candidate.run.get('run', 'an unknown run')))}: {state.lower()}",
        "\n".join(f"> {plain(line)}  " for line in words.splitlines()),
        *checks_list(judgement.checks if judgement else ()),
    ]
    return "\n\n".join(parts) + "\n"


def _verdict(judgement: Judgement) -> str:
    open_ones = [check.name for check in judgement.checks if check.result == "inconclusive"]
    if judgement.result == "inconclusive":
        return f"**The gate leaves it to you**: {plain(', '.join(open_ones))}."
    return f"**The gate says {judgement.result}.**"


def checks_list(checks: Sequence[GateCheck]) -> Iterator[str]:
    """Every check with its evidence: what did not pass first, then how much better it is, then the rest.

    No table: the form is too narrow for one.
    """
    ordered = sorted(checks, key=lambda check: "gain" not in check.name)
    for result, title in GROUPS.items():
        if lines := [f"- **{plain(one.name)}**: {_words(one)}" for one in ordered if one.result == result]:
            yield f"### {title}"
            yield "\n".join(lines)


def _words(check: GateCheck) -> str:
    return plain(check.evidence) + (f"; to change that: {plain(check.how)}" if check.how else "")


def _approvals(standing: Standing, signed: bool) -> Iterator[str]:
    yield f"**{plain(approvals_needed(standing, signed))}.**"
    for approval, why in standing.others:
        said = approval.statement
        yield f"- the one by {plain(said.by)} ({said.at}) does not count: {plain(why)}"


def _how(candidate: Candidate, lines: DecisionCommands, signed: bool, doubtful: bool) -> Iterator[str]:
    yield "### How to decide"
    if signed:
        yield "Decide at a terminal where your key is; this run then goes on by itself:"
    else:
        yield "Decide in the form, or at a terminal in the project:"
    yield f"- `{lines.approve(candidate.digest, doubtful=doubtful)}`\n- `{lines.reject(candidate.digest)}`"
    if signed:
        yield "Or decide here: with `--print` each of them prints what to paste under Signed Approval."
    yield f"To go back later: `{lines.rollback()}`"


def _scope(candidate: Candidate, judgement: Judgement, valid_days: int) -> str:
    evidence = f"evidence `{(judgement.evidence or 'none')[:SHORT]}`"
    return (
        f"An approval is for checkpoint `{candidate.digest[:SHORT]}`, {evidence}, policy "
        f"`{judgement.policy_sha256[:SHORT]}` and the present champion, for {plural(valid_days, 'day')}; "
        "if one of them changes, your approval is requested again."
    )
