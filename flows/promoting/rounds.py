"""The approval requests of one flow run, read from the Prefect server.

A resumed run starts again from its first line, in a new process, perhaps days later. The history of its states contains
how many requests it sent, the last one, and when a person answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import StateType
from prefect.input import read_flow_run_input

from flows.promoting.request import KEY


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
