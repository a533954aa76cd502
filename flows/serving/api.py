"""The little of Prefect's REST interface that a supervisor needs; importing Prefect would take seconds and memory."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

import httpx

from components.errors import InputError

PAGE = 100
TIMEOUT = 30.0
BUSY_RETRIES = 5
"""Retries while the server answers 503, as one on SQLite does when busy; a second apart."""


def authorization(auth: str) -> dict[str, str]:
    """The header for ``user:password``; none where that is empty."""
    return {"Authorization": f"Basic {base64.b64encode(auth.encode()).decode()}"} if auth else {}


class Api:
    """Of the server at ``url``, which asks for ``auth`` (``user:password``) or for nothing."""

    def __init__(self, url: str, auth: str = "") -> None:
        self._http = httpx.Client(base_url=url, headers=authorization(auth), timeout=TIMEOUT, trust_env=False)

    def ready(self) -> bool:
        """Whether the server and its database answer."""
        try:
            return self._http.get("/ready", timeout=5).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The answer as JSON.

        Raises:
            InputError: the server does not answer, or refuses.
        """
        try:
            answer = self._http.post(path, json=body)
            for _ in range(BUSY_RETRIES):
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    break
                time.sleep(1)
                answer = self._http.post(path, json=body)
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise InputError(f"the Prefect server does not do it: {error}", where=path) from error
        return answer.json()

    def flow_runs(self, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Flow runs that a filter of Prefect's picks. A caller that changes their states collects them first."""
        offset = 0
        while True:
            body = {**wanted, "sort": "ID_DESC", "limit": PAGE, "offset": offset}
            found = self.post("/flow_runs/filter", body)
            yield from found
            if len(found) < PAGE:
                return
            offset += PAGE

    def set_state(self, flow_run: str, type: str, name: str, message: str) -> None:
        """Set a flow run's state whatever the present one is."""
        state = {"type": type, "name": name, "message": message}
        self.post(f"/flow_runs/{flow_run}/set_state", {"state": state, "force": True})
