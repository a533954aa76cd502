"""The approval requests of one flow run, and other flow runs that ask about its candidate: from the Prefect server.

A resumed run starts again from its first line, in a new process, perhaps days later. The history of its states contains
how many requests it sent, the last one, and when a person answered.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.input import read_flow_run_input

from components.registry.candidates import digits
from flows.governance.registry import DEFAULT
from flows.promoting.waiting_runs import KEY


@dataclass(frozen=True, slots=True)
class Answer:
    """``values`` is what the form of ``request`` (its sha256) sent, ``at`` when."""

    request: str
    values: Any
    at: datetime


@dataclass(frozen=True, slots=True)
class Rounds:
    """``asked``: number of requests so far; ``last``: the sha256 of the last one; ``answer``: the answer to it, None if
    the run resumed without one."""

    asked: int
    last: str | None
    answer: Answer | None


def rounds(client: SyncPrefectClient, flow_run: UUID, digest: str) -> Rounds:
    """The requests of this flow run about the candidate, and the last answer.

    An answer stays valid until the next request: a process that dies leaves it to the next one.
    """
    history = sorted(client.read_flow_run_states(flow_run), key=lambda state: state.timestamp)
    asked = [
        (number, matched)
        for number, state in enumerate(history)
        if state.type == StateType.PAUSED and (matched := KEY.fullmatch(state.state_details.pause_key or ""))
    ]
    if not asked or asked[-1][1]["digest"] != digest[:16]:
        return Rounds(len(asked), None, None)
    number, last = asked[-1]
    keyset = history[number].state_details.run_input_keyset or {}
    values = read_flow_run_input(keyset["response"], flow_run_id=flow_run) if "response" in keyset else None
    if values is None or number + 1 == len(history):
        return Rounds(len(asked), last["request"], None)
    at = history[number + 1].timestamp.astimezone(UTC)
    return Rounds(len(asked), last["request"], Answer(last["request"], values, at))


LIVE = ("SCHEDULED", "PENDING", "RUNNING", "PAUSED")
PAGE = 100


def asks_already(client: SyncPrefectClient, me: FlowRun, digest: str, registry: str) -> FlowRun | None:
    """The oldest flow run of the same deployment that asks, or is about to ask, about this candidate, where that is not
    this one: one of several sends the request. None where this one was started by hand and has no deployment: it sends
    no request."""
    if me.deployment_id is None:
        return None
    older = [run for run in _live(client, me) if _order(run) < _order(me) and _same(run.parameters, digest, registry)]
    return min(older, key=_order, default=None)


def _order(run: FlowRun) -> tuple[Any, str]:
    """The same order for every flow run, so that exactly one of them continues."""
    return run.created, str(run.id)


def _same(parameters: dict[str, Any], digest: str, registry: str) -> bool:
    named = digits(str(parameters.get("digest", "")))
    return bool(named) and digest.startswith(named) and parameters.get("registry", DEFAULT) == registry


def _live(client: SyncPrefectClient, me: FlowRun) -> Iterator[FlowRun]:
    wanted = {"deployment_id": {"any_": [me.deployment_id]}, "state": {"type": {"any_": LIVE}}}
    picked = FlowRunFilter.model_validate(wanted)
    for offset in itertools.count(0, PAGE):
        found = client.read_flow_runs(flow_run_filter=picked, sort=FlowRunSort.ID_DESC, limit=PAGE, offset=offset)
        yield from found
        if len(found) < PAGE:
            return
