"""A client of a Prefect server's REST interface, without Prefect, which takes seconds to import."""

from __future__ import annotations

import os
import time
from typing import Any

import httpx

from components.processes.ports import LOOPBACK

AUTH_VARIABLE = "PREFECT_API_AUTH_STRING"
"""``user:password``, as Prefect's own clients take it."""

TIMEOUT = 10.0
"""Seconds for one request to the server."""
UNDER_WAY = ("SCHEDULED", "PENDING", "RUNNING")
CANCELLING = {"type": "CANCELLING", "name": "Cancelling"}
CANCELLED = {"type": "CANCELLED", "name": "Cancelled", "message": "Cancelled by `evenkeel cancel`."}


PAUSES = (0.2, 0.5, 1.0, 2.0)
"""Seconds between retries while the server answers 503."""


class RetryTransport(httpx.HTTPTransport):
    """Retries on 503, Prefect's answer when its SQLite file is busy and it has done nothing."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for pause in PAUSES:
            answer = super().handle_request(request)
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                return answer
            answer.close()
            time.sleep(pause)
        return super().handle_request(request)


def client(url: str, timeout: float) -> httpx.Client:
    """Use it as a context. ``timeout``: seconds for one request.

    Raises:
        HTTPError: this is no URL. Other wrong ones are found out by the first request, which raises the same.
    """
    user, colon, password = os.environ.get(AUTH_VARIABLE, "").partition(":")
    auth = httpx.BasicAuth(user, password) if colon else None
    try:
        here = httpx.URL(url).host in (LOOPBACK, "localhost", "::1")  # a proxy would look for it on its own machine
    except httpx.InvalidURL as error:  # no HTTPError in httpx
        raise httpx.UnsupportedProtocol(f"{error}: {url}") from error
    transport = RetryTransport() if here else None  # another one would keep the proxies of the environment out
    return httpx.Client(base_url=url, auth=auth, timeout=timeout, trust_env=not here, transport=transport)


def json_of(answer: httpx.Response) -> Any:
    """The content of a good answer.

    Raises:
        HTTPError: it is none, or it is not JSON, because something else than Prefect listens there.
    """
    try:
        return answer.raise_for_status().json()
    except ValueError as error:
        raise httpx.DecodingError("not JSON", request=answer.request) from error


def describe_error(error: httpx.HTTPError) -> str:
    """What is wrong with the server: that it refuses is not that it does not answer."""
    if not isinstance(error, httpx.HTTPStatusError):
        return f"does not answer ({type(error).__name__})"
    code = error.response.status_code
    wrong = f"; set {AUTH_VARIABLE} to user:password" if code == httpx.codes.UNAUTHORIZED else ""
    return f"refuses ({code} {error.response.reason_phrase}){wrong}"


def state_of(url: str | None, flow_run: str) -> str:
    """The type of a flow run's state."""
    with client(url or "", TIMEOUT) as server:
        return str(json_of(server.get(f"/flow_runs/{flow_run}"))["state_type"])


def set_state(url: str | None, flow_run: str, state: dict[str, str], *, force: bool = False) -> str:
    """Ask for another state; whether the server accepted it, in its own words."""
    with client(url or "", TIMEOUT) as server:
        answer = server.post(f"/flow_runs/{flow_run}/set_state", json={"state": state, "force": force})
    return str(json_of(answer)["status"])
