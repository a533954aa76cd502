"""The requests to a cluster, one method each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from components.launch.kubernetes.api.creating import STRICT, create
from components.launch.kubernetes.api.errors import Failure
from components.launch.kubernetes.api.requests import Patience, Requests
from components.launch.kubernetes.api.resources import (
    ACCESS_REVIEWS,
    EVENTS,
    JOBS,
    JOBSETS,
    PODS,
    Call,
    Resource,
    Verb,
)
from components.launch.kubernetes.permissions import Permission

SLACK = 10.0
"""Seconds that a watch may be silent longer than its requested duration: then its connection is lost."""
FIRST = 3
"""Attempts of the very first request."""
NOT_YET = ("is waiting to start", "is not available", "not found")
"""In what a server says of a log that there is none of."""


class Cluster:
    """The objects of one namespace. A failed request raises a `ClusterError` that states what to do."""

    def __init__(self, requests: Requests, namespace: str) -> None:
        self.requests, self.namespace = requests, namespace

    @classmethod
    def connect(cls, namespace: str, context: str | None = None, patience: Patience | None = None) -> Cluster:
        """The cluster of ``context``; of the present one, or inside a pod that of its own account, where it is None.

        Raises:
            InputError: there are no credentials, or they are not accepted; there is no such context.
            Unreachable: the server does not answer.
        """
        from components.launch.kubernetes.api.connection import Connection  # loads the client

        patience, connection = patience or Patience(), Connection(context)
        # At the start an error is raised soon; later there is more patience with a server that is being restarted.
        cls(Requests(connection, replace(patience, attempts=min(FIRST, patience.attempts))), namespace).version()
        return cls(Requests(connection, patience), namespace)

    @property
    def server(self) -> str:
        """The API server's address, and who we are there."""
        return f"{self.requests.connection.server}, {self.requests.connection.account}"

    def version(self) -> str:
        """Of the API server, such as v1.36.2. Every user who is logged in may read it."""
        with self.requests.explaining(None):
            return str(self.requests.repeated("GET", "/version").get("gitVersion", ""))

    def versions(self, group: str) -> list[str]:
        """The versions of an API group that are served; none where it is unknown. Every user may read them."""
        return self.requests.versions(group)

    def may(self, permission: Permission) -> bool:
        """Whether we have a permission in the namespace."""
        group, resource, verb = permission
        plain, _, part = resource.partition("/")
        attributes = {"group": group, "resource": plain, "subresource": part, "verb": verb, "namespace": self.namespace}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = self.requests.send(self._call("create", ACCESS_REVIEWS), (), review)
        return bool(answer.get("status", {}).get("allowed"))

    def found(self, resource: Resource, name: str) -> dict[str, Any] | None:
        """The object of this name; None where there is none."""
        return self.requests.found(self._call("get", resource, name))

    def listed(self, resource: Resource, selector: str = "") -> list[dict[str, Any]]:
        """All objects of a kind, or those with these labels."""
        query = [("labelSelector", selector)] if selector else []
        return self.requests.listed(self._call("list", resource), query)

    def dry_run(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """What the server would make of a JobSet. It checks everything, and refuses unknown fields."""
        call = self._call("create", JOBSETS, manifest["metadata"]["name"])
        return self.requests.send(call, [("dryRun", "All"), STRICT], manifest)

    def create(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create a JobSet, once; see `creating`.

        Raises:
            Exists: another object has this name.
        """
        return create(self.requests, self._call("create", JOBSETS, manifest["metadata"]["name"]), manifest)

    def jobset(self, name: str) -> dict[str, Any] | None:
        """The JobSet of this name; None where there is none."""
        return self.found(JOBSETS, name)

    def jobsets(self, selector: str) -> list[dict[str, Any]]:
        """JobSets with these labels."""
        return self.listed(JOBSETS, selector)

    def delete_jobset(self, name: str, uid: str | None = None) -> None:
        """Delete a JobSet; it goes after all that it owns. One that is gone is no error, and one of the same name that
        is not the one of this ``uid`` (None: the one that is there now) stays.
        """
        there = None if uid else self.jobset(name)
        known = uid or (there["metadata"]["uid"] if there else None)
        if known is None:
            return
        call = self._call("delete", JOBSETS, name)
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": known},  # so that the request can be repeated if its answer is lost
        }
        try:
            self.requests.repeated(call.method, call.path, (), body)
        except Failure as failure:
            if failure.contended or (failure.status == 404 and not failure.no_such_path):
                return
            raise self.requests.explained(call, failure) from None

    def jobs(self, selector: str) -> list[dict[str, Any]]:
        """Jobs with these labels."""
        return self.listed(JOBS, selector)

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Pods with these labels."""
        return self.listed(PODS, selector)

    def events(self, fields: str = "type!=Normal") -> list[dict[str, Any]]:
        """Events of the namespace with these fields; they have no labels. By default what is not as it should be."""
        return self.requests.listed(self._call("list", EVENTS), [("fieldSelector", fields)])

    def log(
        self,
        pod: str,
        container: str,
        *,
        since: datetime | None = None,
        previous: bool = False,
        timestamps: bool = False,
        tail: int | None = None,
        follow: bool = False,
    ) -> Iterator[str]:
        """Lines that a container has written; none where it has not begun, or its pod is gone.

        Args:
            since: leave out what is older. Servers know whole seconds only.
            previous: of the container's run before a restart.
            timestamps: begin every line with its time and a space.
            tail: the last lines only.
            follow: go on until the container ends.

        Raises:
            Unreachable: the log broke off, after the lines that were returned.
        """
        wanted = {"container": container, "previous": previous, "timestamps": timestamps, "follow": follow}
        query = [(name, value if isinstance(value, str) else "true") for name, value in wanted.items() if value]
        query += [("sinceTime", f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")] if since else []
        query += [("tailLines", str(tail))] if tail is not None else []
        call = Call("get", PODS, self.namespace, pod, "log")
        try:
            yield from self.requests.lines(call, query, 3600.0 if follow else self.requests.patience.timeout)
        except Failure as failure:
            if failure.status in (400, 404) and any(part in failure.text for part in NOT_YET):
                return
            raise self.requests.explained(call, failure) from None

    def watch(self, name: str, seconds: float) -> Iterator[dict[str, Any]]:
        """What happens to the JobSet of this name, its present state first, for so long or until the server ends it.

        Raises:
            ClusterError: it could not be opened, broke off, or reported an error. Nothing is tried again here.
        """
        call = self._call("watch", JOBSETS)
        limit = max(1, round(seconds))
        query = [("watch", "true"), ("fieldSelector", f"metadata.name={name}"), ("timeoutSeconds", str(limit))]
        with self.requests.explaining(call):
            yield from self.requests.events(call, query, limit + SLACK)

    def _call(self, verb: Verb, resource: Resource, name: str = "") -> Call:
        return Call(verb, resource, self.namespace, name)
