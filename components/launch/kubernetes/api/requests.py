"""Which failures are worth another attempt, and how long a request may take in all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from components.attempts import Attempts
from components.errors import CorrectableError
from components.launch.kubernetes.api import wording
from components.launch.kubernetes.api.errors import Failure, of_status
from components.launch.kubernetes.api.resources import Call

if TYPE_CHECKING:
    from components.launch.kubernetes.api.connection import Connection

Query = Sequence[tuple[str, str]]
PAGE = 500
"""Objects in one answer: a thousand pods come in two."""
LISTS = 5
"""How often a list is restarted because its next page came too late."""


@dataclass(frozen=True, slots=True)
class Patience:
    """``attempts`` of a request, all begun within ``deadline`` seconds, each of at most ``timeout`` seconds."""

    attempts: int = 8
    deadline: float = 60.0
    timeout: float = 20.0
    first_pause: float = 0.25
    longest_pause: float = 10.0
    sleep: Callable[[float], None] = time.sleep

    def begin(self) -> Attempts:
        """Those of one request, now that its first one begins."""
        return Attempts(
            self.first_pause, self.longest_pause, most=self.attempts, seconds=self.deadline, sleep=self.sleep
        )


class Requests:
    """Requests over one connection, whose failures become sentences."""

    def __init__(self, connection: Connection, patience: Patience) -> None:
        self.connection, self.patience = connection, patience

    def send(self, call: Call, query: Query = (), body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a request that may be made several times: one that only looks, or deletes one known object.

        Raises:
            ClusterError: see `wording`.
        """
        with self.explaining(call):
            return self.repeated(call.method, call.path, query, body)

    def found(self, call: Call) -> dict[str, Any] | None:
        """The object, or None where there is none of this name."""
        try:
            return self.repeated(call.method, call.path)
        except Failure as failure:
            if failure.status == 404 and not failure.no_such_path:
                return None
            raise self.explained(call, failure) from None

    def listed(self, call: Call, query: Query = ()) -> list[dict[str, Any]]:
        """All objects, page after page. A list that took too long to be continued (410) is restarted."""
        for left in reversed(range(LISTS)):
            try:
                return list(self._pages(call, query))
            except Failure as failure:
                if failure.status != 410 or not left:
                    raise self.explained(call, failure) from None
        raise AssertionError("the last turn returns or raises")

    def _pages(self, call: Call, query: Query) -> Iterator[dict[str, Any]]:
        more = ""
        while True:
            place = [("continue", more)] if more else []
            page = self.repeated(call.method, call.path, [*query, ("limit", str(PAGE)), *place])
            yield from page.get("items") or ()
            more = (page.get("metadata") or {}).get("continue") or ""
            if not more:
                return

    def repeated(self, method: str, path: str, query: Query = (), body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer, after as many attempts as that takes.

        Raises:
            Failure: of the last attempt.
        """
        attempts = self.patience.begin()
        while True:
            try:
                return self.once(method, path, query, body)
            except Failure as failure:
                if not failure.passing or not attempts.again(failure.after or 0.0):
                    raise

    def once(self, method: str, path: str, query: Query = (), body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One attempt; a second one with fresh credentials where the server did not accept those that we had."""
        try:
            answer = self.connection.exchange(method, path, query, body, self.patience.timeout)
        except Failure as failure:
            if failure.status != 401:
                raise
            self.connection.renew()  # a token that has expired may have been renewed where it came from
            answer = self.connection.exchange(method, path, query, body, self.patience.timeout)
        try:
            parsed = json.loads(answer)
        except ValueError as error:
            raise Failure("what it answers is no JSON; is it a Kubernetes API server?") from error
        if not isinstance(parsed, dict):
            raise Failure("what it answers is no object of Kubernetes")
        return parsed

    def lines(self, call: Call, query: Query, idle: float) -> Iterator[str]:
        """Lines as they come, without the end of a line that broke off.

        Args:
            idle: seconds without a byte after which the connection is taken to be lost.

        Raises:
            Failure: it could not be opened, or broke off.
        """
        try:
            yield from self.connection.lines(call.path, query, idle)
        except Failure as failure:
            if failure.status != 401:
                raise
            self.connection.renew()
            yield from self.connection.lines(call.path, query, idle)

    def events(self, call: Call, query: Query, idle: float) -> Iterator[dict[str, Any]]:
        """The events of a watch, until the server ends it.

        Raises:
            Failure: it could not be opened, broke off, or reported an error.
        """
        for line in self.lines(call, query, idle):
            try:
                event = json.loads(line)
                kind, found = event["type"], event["object"]
            except (ValueError, TypeError, KeyError) as error:
                raise Failure("a watch sent what is no event") from error
            if kind == "ERROR":
                raise of_status(found if isinstance(found, dict) else {})
            yield event

    def versions(self, group: str) -> list[str]:
        """The versions of an API group that are served; none where it is unknown. Every user who is logged in may read
        them."""
        try:
            served = self.repeated("GET", f"/apis/{group}")
        except Failure as failure:
            if failure.status == 404:
                return []
            raise self.explained(None, failure) from None
        return [str(one["version"]) for one in served.get("versions") or ()]

    @contextmanager
    def explaining(self, call: Call | None) -> Iterator[None]:
        """Raises what `explained` makes of a failure."""
        try:
            yield
        except Failure as failure:
            raise self.explained(call, failure) from None

    def explained(self, call: Call | None, failure: Failure) -> CorrectableError:
        """What to raise for a failure."""
        group = call.resource.group if call is not None and failure.no_such_path else ""
        versions = self.versions(group) if group else []
        return wording.explain(failure, call, self.connection.server, self.connection.account, versions)
