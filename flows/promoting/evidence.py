"""What a person sees before deciding: Markdown, the same above the form and in the artifact `promotion-request`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from components.health.summaries.markdown import plain
from components.registry import Candidate, Standing
from components.types import GateCheck, Judgement
from components.words import plural
from flows.governance.commands import SHORT, DecisionCommands

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
