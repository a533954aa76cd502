"""The requests to a cluster, one method each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from components.errors import CorrectableError
from components.launch.kubernetes.api.errors import Failure
from components.launch.kubernetes.api.requests import Patience, Requests
from components.launch.kubernetes.api.resources import ACCESS_REVIEWS, EVENTS, JOBS, JOBSETS, PODS, Call
from components.launch.kubernetes.names import SPEC
from components.launch.kubernetes.permissions import Permission

STRICT = ("fieldValidation", "Strict")
SLACK = 10.0
"""Seconds that a watch may be silent longer than its requested duration: then its connection is lost."""
FIRST = 3
"""Attempts of the very first request."""
NOT_YET = ("is waiting to start", "is not available", "not found")
"""In what a server says of a log that there is none of."""


class Cluster(Requests):
    """The objects of one namespace. A failed request raises a `ClusterError` that states what to do."""

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
        cls(connection, replace(patience, attempts=min(FIRST, patience.attempts)), namespace).version()
        return cls(connection, patience, namespace)

    @property
    def server(self) -> str:
        """The API server's address, and who we are there."""
        return f"{self.connection.server}, {self.connection.account}"

    def version(self) -> str:
        """Of the API server, such as v1.36.2. Every user who is logged in may read it."""
        with self._explaining(None):
            return str(self._repeated("GET", "/version").get("gitVersion", ""))

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
        call = self._call("create", ACCESS_REVIEWS)
        with self._explaining(call):
            answer = self._repeated("POST", call.path, (), review)
        return bool(answer.get("status", {}).get("allowed"))

    def dry_run(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """What the server would make of a JobSet. It checks everything, and refuses unknown fields."""
        call = self._call("create", JOBSETS, manifest["metadata"]["name"])
        with self._explaining(call):
            return self._repeated("POST", call.path, [("dryRun", "All"), STRICT], manifest)

    def create(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create a JobSet, once; returns it as the server has it.

        A request that was not answered may have been carried out. So nothing is sent again before it was looked whether
        the object is there, and is ours, by the digest of its specification (annotation `evenkeel/spec`).

        Raises:
            Exists: another object has this name.
            ClusterError: see `wording`; where it is not known whether the object was created, the message says so.
        """
        call = self._call("create", JOBSETS, manifest["metadata"]["name"])
        attempts, unsure = self.patience.begin(), False
        while True:
            try:
                return self.connection.exchange("POST", call.path, [STRICT], manifest, self.patience.timeout)
            except Failure as failure:
                unsure = unsure or failure.may_have_succeeded
                if unsure and (found := self._ours(call, manifest, failure)):
                    return found
                passing = failure.passing or failure.contended
                if not passing or not attempts.again(failure.after or 0.0):
                    raise self._explained(call, failure, unsure=unsure and not failure.exists) from None

    def _ours(self, call: Call, manifest: dict[str, Any], failure: Failure) -> dict[str, Any] | None:
        """What an earlier attempt, or this one, created although no answer confirmed it, and is not being deleted."""
        try:
            found = self.found(call.resource, call.name)
        except CorrectableError:
            raise self._explained(call, failure, unsure=True) from None
        wanted = manifest["metadata"].get("annotations", {}).get(SPEC)
        metadata = found["metadata"] if found else {}
        same = bool(wanted) and (metadata.get("annotations") or {}).get(SPEC) == wanted
        return found if same and not metadata.get("deletionTimestamp") else None

    def jobset(self, name: str) -> dict[str, Any] | None:
        """The JobSet of this name; None where there is none."""
        return self.found(JOBSETS, name)

    def jobsets(self, selector: str) -> list[dict[str, Any]]:
        """JobSets with these labels."""
        return self.listed(JOBSETS, ("labelSelector", selector))

    def delete_jobset(self, name: str, uid: str) -> None:
        """Delete a JobSet; it goes after all that it owns. One that is gone is no error, and one of the same name that
        is not the one of this ``uid`` stays.
        """
        call = self._call("delete", JOBSETS, name)
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": uid},  # so that the request can be repeated if its answer is lost
        }
        with self._explaining(call, lambda failure: failure.contended or failure.absent):
            self._repeated("DELETE", call.path, (), body)

    def jobs(self, selector: str) -> list[dict[str, Any]]:
        """Jobs with these labels."""
        return self.listed(JOBS, ("labelSelector", selector))

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Pods with these labels."""
        return self.listed(PODS, ("labelSelector", selector))

    def events(self) -> list[dict[str, Any]]:
        """Events of the namespace that are not as they should be; they have no labels."""
        return self.listed(EVENTS, ("fieldSelector", "type!=Normal"))

    def log(
        self,
        pod: str,
        container: str,
        *,
        since: datetime | None = None,
        timestamps: bool = False,
        follow: bool = False,
    ) -> Iterator[str]:
        """Lines that a container has written; none where it has not begun, or its pod is gone.

        Args:
            since: leave out what is older. Servers know whole seconds only.
            timestamps: begin every line with its time and a space.
            follow: go on until the container ends.

        Raises:
            Unreachable: the log broke off, after the lines that were returned.
        """
        query = [("container", container)]
        query += [(name, "true") for name, wanted in (("timestamps", timestamps), ("follow", follow)) if wanted]
        query += [("sinceTime", f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")] if since else []
        call = self._call("get", PODS, pod, "log")
        with self._explaining(call, _no_log):
            yield from self.connection.lines(call.path, query, 3600.0 if follow else self.patience.timeout)

    def watch(self, name: str, seconds: float) -> Iterator[dict[str, Any]]:
        """What happens to the JobSet of this name, its present state first, for so long or until the server ends it.

        Raises:
            ClusterError: it could not be opened, broke off, or reported an error. Nothing is tried again here.
        """
        call = self._call("watch", JOBSETS)
        limit = max(1, round(seconds))
        query = [("watch", "true"), ("fieldSelector", f"metadata.name={name}"), ("timeoutSeconds", str(limit))]
        with self._explaining(call):
            yield from self._events(call, query, limit + SLACK)


def _no_log(failure: Failure) -> bool:
    return failure.status in (400, 404) and any(part in failure.text for part in NOT_YET)
