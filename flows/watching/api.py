"""A client of a Prefect server's REST interface, without Prefect, which takes seconds to import."""

from __future__ import annotations

import os
from typing import Any

import httpx

from components.processes.ports import LOOPBACK

AUTH_VARIABLE = "PREFECT_API_AUTH_STRING"
"""``user:password``, as Prefect's own clients take it."""


def client(url: str, timeout: float) -> httpx.Client:
    """Use it as a context. ``timeout``: seconds for one request."""
    user, colon, password = os.environ.get(AUTH_VARIABLE, "").partition(":")
    auth = httpx.BasicAuth(user, password) if colon else None
    here = httpx.URL(url).host in (LOOPBACK, "localhost", "::1")  # a proxy would look for it on its own machine
    return httpx.Client(base_url=url, auth=auth, timeout=timeout, trust_env=not here)


def json_of(answer: httpx.Response) -> Any:
    """The content of a good answer.

    Raises:
        HTTPError: it is none, or it is not JSON, because something else than Prefect listens there.
    """
    try:
        return answer.raise_for_status().json()
    except ValueError as error:
        raise httpx.DecodingError("not JSON", request=answer.request) from error
