"""Artifacts of a flow run on the Prefect server, created and updated from a separate thread.

A server that does not answer costs the thread a timeout and never delays the run: it is logged once and retried with
growing pauses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings

TIMEOUT = 5.0
"""Seconds for one request."""
PAUSES = (10.0, 30.0, 60.0)
"""Seconds without a request after the first, second, and every later failure in a row."""
Answer = TypeVar("Answer")


@dataclass
class Artifact:
    """One artifact that is changed in place: the UI keeps one version of it in a run, however often it changes. Its
    name ``key`` is the same in every run; ``kind`` is Prefect's type."""

    key: str
    kind: str
    id: UUID | None = None
    sent: tuple[str, Any] | None = field(default=None, repr=False)


class Channel:
    """Use it in one thread, as a context, within the context of a flow run."""

    def __init__(self, flow_run: UUID | None, task_run: UUID | None) -> None:
        self._flow_run, self._task_run = flow_run, task_run
        self._open = ExitStack()
        self._client: SyncPrefectClient | None = None
        self._failures, self._silent_until = 0, 0.0

    def __enter__(self) -> Self:
        self._open.enter_context(temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def works(self) -> bool:
        """Whether the server answered the last request."""
        return self._failures == 0

    def show(self, artifact: Artifact, description: str, data: Any) -> None:
        """Make the artifact, or change it. What is as it was sent before is not sent again."""
        if artifact.sent == (description, data) or time.monotonic() < self._silent_until:
            return
        if self._try(lambda client: self._send(client, artifact, description, data)):
            artifact.sent = (description, data)

    def _send(self, client: SyncPrefectClient, artifact: Artifact, description: str, data: Any) -> None:
        if artifact.id is not None:
            changed = {"description": description, "data": data}
            # not client.update_artifact, which also emits an event: one for every change would fill the database
            try:
                client.request("PATCH", "/artifacts/{id}", path_params={"id": artifact.id}, json=changed)
                return
            except httpx.HTTPStatusError as error:
                if error.response.status_code != httpx.codes.NOT_FOUND:
                    raise  # NOT_FOUND: it was deleted in the UI
        runs = {"flow_run_id": self._flow_run, "task_run_id": self._task_run}
        made = ArtifactCreate(key=artifact.key, type=artifact.kind, description=description, data=data, **runs)
        artifact.id = client.create_artifact(made).id

    def _try(self, request: Callable[[SyncPrefectClient], None]) -> bool:
        try:
            if self._client is None:
                settings = {"timeout": TIMEOUT}
                self._client = self._open.enter_context(get_client(httpx_settings=settings, sync_client=True))
            request(self._client)
        except Exception as error:  # whatever it is, the run goes on
            if not self._failures:
                said = f"{type(error).__name__}: {error}".splitlines()[0]
                get_run_logger().warning(
                    "the run goes on, but cannot show its progress on the Prefect server: %s", said
                )
            self._silent_until = time.monotonic() + PAUSES[min(self._failures, len(PAUSES) - 1)]
            self._failures += 1
            return False
        if self._failures:
            get_run_logger().info("the Prefect server answers again")
        self._failures = 0
        return True
