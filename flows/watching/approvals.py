"""Candidates that await a person, from the registry, and the suspended runs of `promote` that ask, from the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from components.config.promotion import load_policy
from components.errors import EvenkeelError, InputError
from components.registry import Candidate, candidates, decided, read_history, standing_unjudged
from components.words import plural
from flows.display.output import field, plain_table, say
from flows.governance.commands import SHORT, DecisionCommands, config_of
from flows.governance.registry import DEFAULT, RegistryContext, named_store
from flows.prefect_runtime.server import PrefectServer, ServerUnavailable
from flows.promoting.waiting_runs import Run, server_url
from flows.promoting.waiting_runs import runs as runs_of_promote
from flows.watching.runs import RunView

PATIENCE = 2.0
"""Seconds for each of connecting to a server and of waiting for its answer: a list must not hang on it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A candidate without a decision. ``since`` is when its run of `promote` was suspended, or else when the run that
    proposed it ended; ``suspended`` is the address of that run of `promote` on the server. "" is what is not known."""

    candidate: str
    run: str
    since: str
    waits_for: str
    suspended: str
    decide: str


@dataclass(frozen=True, slots=True)
class Found:
    """``problems`` are sentences: what could not be requested or read."""

    waiting: list[Waiting]
    problems: list[str]


def find_waiting(project: Path, found: Sequence[RunView]) -> Found:
    """All of them, those that wait longest first. A server or a registry out of reach is no error."""
    asking, problems = _suspended(project)
    proposers = {run.execution.candidate: run for run in found if run.execution and run.execution.candidate}
    registries = {DEFAULT, *(one.registry for one in asking)}
    registries |= {run.registry for run in proposers.values() if run.registry}
    waiting = {}
    for registry in sorted(registries):
        try:
            store = named_store(project, registry)
            history = read_history(store)
            for candidate in (one for one in candidates(store) if decided(history, one, history.base) is None):
                asks = next((one for one in reversed(asking) if one.about(candidate.digest, registry)), None)
                proposer = proposers.get(candidate.digest)
                run_id = proposer.run_id if proposer else str(candidate.run.get("run", ""))
                config = config_of(project, run_id, registry)
                context = RegistryContext(project, store, load_policy(project), config)
                waiting[candidate.digest] = _waiting(context, candidate, run_id, proposer, asks)
        except (EvenkeelError, OSError) as error:
            problems.append(f"the candidates in the registry {registry} are not known: {error}")
    return Found(sorted(waiting.values(), key=lambda one: (one.since, one.candidate)), problems)


def _suspended(project: Path) -> tuple[list[Run], list[str]]:
    """Suspended runs of `promote`, the newest first; none where no server is up."""
    if (api := server_url(project)) is None:
        return [], []
    try:
        with PrefectServer(api, timeout=PATIENCE, attempts=1) as server:
            return list(runs_of_promote(server, "PAUSED")), []
    except ServerUnavailable as away:
        return [], [f"the Prefect server at {api} {away.predicate}; which runs of `promote` are suspended is not known"]


def _waiting(
    context: RegistryContext, candidate: Candidate, run_id: str, run: RunView | None, asks: Run | None
) -> Waiting:
    quorum = context.policy.settings.quorum("promote")
    needed = plural(quorum.approvals, "signed approval" if quorum.signed else "approval")
    ended = run.execution.ended if run and run.execution else None
    doubtful = candidate.gate["result"] == "inconclusive"
    return Waiting(
        candidate=candidate.digest,
        run=run_id,
        since=asks.since.isoformat(timespec="seconds") if asks else ended or "",
        waits_for=f"{needed}{_given(context, candidate)}",
        suspended=f"{(server_url(context.project) or '').removesuffix('/api')}/runs/flow-run/{asks.id}" if asks else "",
        decide=DecisionCommands.of(context).approve(candidate.digest, doubtful=doubtful),
    )


def _given(context: RegistryContext, candidate: Candidate) -> str:
    """How many approvals count so far."""
    try:
        standing = standing_unjudged(context.store, candidate, context.policy)
    except InputError as error:  # of this candidate's record: the others can be shown
        return f"; those given cannot be counted: {error.what}"
    return f", {len(standing.counted)} given" if standing and standing.counted else ""


def rows(found: Sequence[RunView], waiting: Sequence[Waiting]) -> list[dict[str, Any]]:
    """Runs as JSON values, each with what its candidate waits for, or null; then candidates of no run that is here."""
    by_digest = {one.candidate: asdict(one) for one in waiting}
    listed = [run.to_dict() for run in found]
    listed = [{**row, "waiting": by_digest.get(str(row["candidate"]))} for row in listed]
    here = {row["candidate"] for row in listed}
    for digest, one in by_digest.items():
        if digest not in here:
            listed.append({"run": one["run"], "state": "candidate", "candidate": digest, "waiting": one})
    return listed


def show(console: Console, found: Found) -> None:
    """A row a candidate, and how to decide; nothing where none waits."""
    if found.waiting:
        names = ("awaiting approval", "of run", "since", "waits for")
        table = plain_table(*names, no_wrap=names)
        for one in found.waiting:
            since = datetime.fromisoformat(one.since).astimezone().strftime("%Y-%m-%d %H:%M") if one.since else ""
            table.add_row(*map(field, (one.candidate[:SHORT], one.run, since, one.waits_for)))
        console.print(table)
    for one in found.waiting:
        asks = f", or Resume at {one.suspended}" if one.suspended else ""
        say(console, f"decide  {one.decide}{asks}")
    say(console, *found.problems, style="yellow")
