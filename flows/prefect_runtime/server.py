"""A Prefect server by its REST interface: importing Prefect would take seconds and memory.

Where it becomes unreachable during a run that was started by hand the run continues, and its workspace holds the
outcome.
"""

from __future__ import annotations

import itertools
import os
import queue
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self

import httpx

from components.attempts import Attempts
from components.errors import CorrectableError, EvenkeelError, InputError
from components.processes.environments import LOOPBACK
from flows.run.workspace import Outcome, Workspace
from flows.watching.execution import read

AUTH_VARIABLE = "PREFECT_API_AUTH_STRING"
"""``user:password``, as Prefect's own clients take it."""
TIMEOUT = 10.0
"""Seconds for one request."""
FIRST_PAUSE, LONGEST_PAUSE, MOST = 0.5, 4.0, 6
"""Seconds between requests, and how many there are, while the server answers 503: its SQLite file is busy, and it has
done nothing."""
PAGE = 200
"""Flow runs in one answer; the server's limit."""
UNDER_WAY = ("SCHEDULED", "PENDING", "RUNNING")
WITH_PROCESS = ("RUNNING", "PENDING", "CANCELLING")
ZOMBIE = "Its process gave no sign of life"
"""How the state message of a run begins that the server marked as crashed (`flows.serving.automations`)."""
CANCELLING = {"type": "CANCELLING", "name": "Cancelling"}
CANCELLED = {"type": "CANCELLED", "name": "Cancelled", "message": "Cancelled by `evenkeel cancel`."}


class ServerUnavailable(CorrectableError):
    """A Prefect server does not answer, or refuses. ``predicate`` states it of a server, with what to do about it."""

    def __init__(self, what: str, *, where: str, how: str | None = None) -> None:
        super().__init__(f"the Prefect server {what}", where=where, how=how)
        self.predicate = f"{what}; {how}" if how else what


class PrefectServer:
    """Use it as a context, or for as long as the process lives.

    Args:
        url: of its API.
        auth: ``user:password``; None takes it from the environment, and an empty one sends none.
        timeout: seconds for one request.
        attempts: requests in all while the server is busy.
    """

    def __init__(self, url: str, auth: str | None = None, timeout: float = TIMEOUT, attempts: int = MOST) -> None:
        self.url, self._most = url, attempts
        user, colon, password = (os.environ.get(AUTH_VARIABLE, "") if auth is None else auth).partition(":")
        try:
            here = httpx.URL(url).host in (LOOPBACK, "localhost", "::1")  # a proxy would look on its own machine
            self._http = httpx.Client(
                base_url=url, auth=(user, password) if colon else None, timeout=timeout, trust_env=not here
            )
        except httpx.InvalidURL as error:
            raise ServerUnavailable(f"has no such address: {error}", where=url) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ready(self) -> bool:
        """Whether the server and its database answer."""
        try:
            return self._http.get("/ready", timeout=5).is_success
        except httpx.HTTPError:
            return False

    def get(self, path: str) -> Any:
        """The answer as JSON; None where there is no such thing.

        Raises:
            ServerUnavailable: it does not answer, or refuses, or something other than Prefect listens there.
        """
        return self._request("GET", path)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """As `get`."""
        return self._request("POST", path, json=body)

    def flow_runs(self, wanted: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Flow runs that a filter of Prefect's picks, in no order of time: ids are random. A caller that changes their
        states collects them first."""
        for offset in itertools.count(0, PAGE):
            found = self.post("/flow_runs/filter", {**wanted, "sort": "ID_DESC", "limit": PAGE, "offset": offset})
            if found is None:
                raise ServerUnavailable("knows no flow runs, so something else listens there", where=self.url)
            yield from found
            if len(found) < PAGE:
                return

    def state_of(self, flow_run: str) -> str:
        """The type of a flow run's state; empty where there is no such run."""
        found = self.get(f"/flow_runs/{flow_run}")
        return "" if found is None else str(found["state_type"])

    def set_state(self, flow_run: str, state: Mapping[str, str], *, force: bool = False) -> str:
        """Request another state, or with ``force`` set it whatever the present one is; returns ``ACCEPT`` where the
        server accepted."""
        answer = self.post(f"/flow_runs/{flow_run}/set_state", {"state": dict(state), "force": force})
        return "ABSENT" if answer is None else str(answer["status"])

    def _request(self, method: str, path: str, **content: Any) -> Any:
        try:
            attempts = Attempts(FIRST_PAUSE, LONGEST_PAUSE, most=self._most)
            answer = self._http.request(method, path, **content)
            while answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and attempts.again():
                answer = self._http.request(method, path, **content)
            return None if answer.status_code == httpx.codes.NOT_FOUND else answer.raise_for_status().json()
        except httpx.HTTPStatusError as error:
            answer = error.response
            how = f"set {AUTH_VARIABLE} to user:password" if answer.status_code == httpx.codes.UNAUTHORIZED else None
            what = f"refuses ({answer.status_code} {answer.reason_phrase})"
            raise ServerUnavailable(what, where=self.url, how=how) from error
        except (httpx.HTTPError, ValueError) as error:  # ValueError: not JSON
            raise ServerUnavailable(f"does not answer ({type(error).__name__})", where=self.url) from error


NOTE = (
    "the Prefect server became unreachable: the UI does not show how this run ended; its record and its outcome are "
    "complete"
)


def outcome_on_disk(workspace: Workspace, lost: httpx.HTTPError) -> Outcome:
    """The outcome of this process's run, read from its workspace because the server is unreachable.

    Raises:
        InputError: the server became unreachable before the run ended.
        EvenkeelError: the run failed, for the reason that it carries.
    """
    drop_queued_events()
    last = read(workspace.root)
    mine = last is not None and last.pid == os.getpid() and last.ended is not None
    if last is None or not mine or last.state not in ("candidate", "refused", "failed"):
        raise _unreachable(lost) from lost
    if last.state == "failed":
        raise EvenkeelError(last.reason) from lost
    return Outcome(workspace.run_id, str(workspace.root), last.candidate, last.reason)


def _unreachable(lost: httpx.HTTPError) -> InputError:
    how = "`evenkeel serve` starts it; the same command continues from the last checkpoint"
    return InputError(f"the Prefect server became unreachable ({type(lost).__name__})", how=how)


@contextmanager
def server_needed() -> Iterator[None]:
    """The loss of the server in the block as an error of ours."""
    try:
        yield
    except httpx.HTTPError as lost:
        drop_queued_events()
        raise _unreachable(lost) from lost


def drop_queued_events() -> None:
    """Drop events that wait to be sent: Prefect would retry each for seconds before the process ends."""
    from prefect.events.worker import EventsWorker

    services: Any = EventsWorker
    for worker in list(services._instances.values()):
        if isinstance(worker, EventsWorker):
            with suppress(queue.Empty):
                while True:
                    worker._queue.get_nowait()
