"""Which failures are worth another attempt, and how long a request may take in all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from components.attempts import Attempts
from components.errors import CorrectableError
from components.launch.kubernetes.api import wording
from components.launch.kubernetes.api.errors import Failure, of_status
from components.launch.kubernetes.api.resources import Call, Resource, Verb

if TYPE_CHECKING:
    from components.launch.kubernetes.api.connection import Connection, Query

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
    """Requests about the objects of one namespace, whose failures become sentences."""

    def __init__(self, connection: Connection, patience: Patience, namespace: str) -> None:
        self.connection, self.patience, self.namespace = connection, patience, namespace

    def found(self, resource: Resource, name: str) -> dict[str, Any] | None:
        """The object of this name; None where there is none."""
        call, found = self._call("get", resource, name), None
        with self._explaining(call, lambda failure: failure.absent):
            found = self._repeated("GET", call.path)
        return found

    def listed(self, resource: Resource, *query: tuple[str, str]) -> list[dict[str, Any]]:
        """All objects, page after page. A list that took too long to be continued (410) is restarted."""
        call = self._call("list", resource)
        with self._explaining(call):
            for left in reversed(range(LISTS)):
                try:
                    return list(self._pages(call, query))
                except Failure as failure:
                    if failure.status != 410 or not left:
                        raise
        raise AssertionError("the last turn returns or raises")

    def versions(self, group: str) -> list[str]:
        """The versions of an API group that are served; none where it is unknown. Every user who is logged in may read
        them."""
        served: dict[str, Any] = {}
        with self._explaining(None, lambda failure: failure.status == 404):
            served = self._repeated("GET", f"/apis/{group}")
        return [str(one["version"]) for one in served.get("versions") or ()]

    def _call(self, verb: Verb, resource: Resource, name: str = "", part: str = "") -> Call:
        return Call(verb, resource, self.namespace, name, part)

    def _pages(self, call: Call, query: Query) -> Iterator[dict[str, Any]]:
        more = ""
        while True:
            place = [("continue", more)] if more else []
            page = self._repeated("GET", call.path, [*query, ("limit", str(PAGE)), *place])
            yield from page.get("items") or ()
            more = (page.get("metadata") or {}).get("continue") or ""
            if not more:
                return

    def _repeated(
        self, method: str, path: str, query: Query = (), body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """The answer to a request that may be made several times: one that only looks, or deletes one known object.

        Raises:
            Failure: of the last attempt.
        """
        attempts = self.patience.begin()
        while True:
            try:
                return self.connection.exchange(method, path, query, body, self.patience.timeout)
            except Failure as failure:
                if not failure.passing or not attempts.again(failure.after or 0.0):
                    raise

    def _events(self, call: Call, query: Query, idle: float) -> Iterator[dict[str, Any]]:
        """The events of a watch, until the server ends it.

        Raises:
            Failure: it could not be opened, broke off, or reported an error.
        """
        for line in self.connection.lines(call.path, query, idle):
            try:
                event = json.loads(line)
                kind, found = event["type"], event["object"]
            except (ValueError, TypeError, KeyError) as error:
                raise Failure("a watch sent what is no event") from error
            if kind == "ERROR":
                raise of_status(found if isinstance(found, dict) else {})
            yield event

    @contextmanager
    def _explaining(self, call: Call | None, expected: Callable[[Failure], bool] = lambda _: False) -> Iterator[None]:
        """Raises what `_explained` makes of a failure; one that is expected only ends the block."""
        try:
            yield
        except Failure as failure:
            if not expected(failure):
                raise self._explained(call, failure) from None

    def _explained(self, call: Call | None, failure: Failure, *, unsure: bool = False) -> CorrectableError:
        """What to raise for a failure, with a word of warning where the object may have been created."""
        group = call.resource.group if call is not None and failure.no_such_path else ""
        versions = self.versions(group) if group else []
        error = wording.explain(failure, call, self.connection.server, self.connection.account, versions)
        if call is not None and unsure:
            error.what += f"; whether {call.what} was created is not known"
            error.how = f"see whether it is there: {call.look}; and then: {error.how or 'try again'}"
        return error
