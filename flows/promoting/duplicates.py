"""One approval request per candidate at a time: of several flow runs about a candidate, the oldest sends it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort

from components.registry.candidates import digits
from flows.promoting.registries import DEFAULT

LIVE = [StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING, StateType.PAUSED]
PAGE = 100


def asks_already(client: SyncPrefectClient, me: FlowRun, digest: str, registry: str) -> FlowRun | None:
    """The older flow run of the same deployment that asks, or is about to ask, about this candidate; None where this
    one was started by hand and has no deployment: it sends no request."""
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
    wanted = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[me.deployment_id]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=LIVE)),
    )
    offset = 0
    while True:
        found = client.read_flow_runs(flow_run_filter=wanted, sort=FlowRunSort.ID_DESC, limit=PAGE, offset=offset)
        yield from found
        if len(found) < PAGE:
            return
        offset += PAGE
