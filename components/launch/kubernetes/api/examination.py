"""What `evenkeel doctor --kubernetes` looks at besides: the cluster's own state, and what we may do there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from components.launch.kubernetes.api.cluster import Cluster
from components.launch.kubernetes.api.resources import (
    ACCESS_REVIEWS,
    ACCOUNTS,
    CLAIMS,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    QUEUES,
    QUOTAS,
    STORAGE_CLASSES,
    Call,
    Resource,
    Verb,
)
from components.launch.kubernetes.permissions import KUEUE, Permission, needs


class Examination:
    """Of one namespace, and of the cluster around it. Nothing is changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._requests, self.namespace = cluster.requests, cluster.namespace

    @property
    def server(self) -> str:
        """The API server's address, and who we are there."""
        return f"{self._requests.connection.server}, {self._requests.connection.account}"

    @needs()
    def versions(self, group: str) -> list[str]:
        """The versions of an API group that are served; none where it is unknown. Every user may read them."""
        return self._requests.versions(group)

    @needs(("authorization.k8s.io", "selfsubjectaccessreviews", "create"))
    def may(self, permission: Permission, *, everywhere: bool = False) -> bool:
        """Whether we have a permission, in the namespace or in the whole cluster."""
        group, resource, verb = permission
        plain, _, part = resource.partition("/")
        attributes = {"group": group, "resource": plain, "subresource": part, "verb": verb}
        attributes |= {} if everywhere else {"namespace": self.namespace}
        # An access to a namespace itself is checked within it, by its name.
        attributes |= {"name": self.namespace} if plain == "namespaces" else {}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = self._requests.send(self._call("create", ACCESS_REVIEWS), (), review)
        return bool(answer.get("status", {}).get("allowed"))

    @needs(("", "namespaces", "get"))
    def described(self) -> dict[str, Any] | None:
        """The namespace; None where there is none of this name."""
        return self._requests.found(self._call("get", NAMESPACES, self.namespace))

    @needs(("", "resourcequotas", "list"))
    def quotas(self) -> list[dict[str, Any]]:
        return self._requests.listed(self._call("list", QUOTAS))

    @needs(("", "persistentvolumeclaims", "get"))
    def claim(self, name: str) -> dict[str, Any] | None:
        return self._requests.found(self._call("get", CLAIMS, name))

    @needs(("", "serviceaccounts", "get"))
    def account(self, name: str) -> dict[str, Any] | None:
        return self._requests.found(self._call("get", ACCOUNTS, name))

    @needs((KUEUE, "localqueues", "get"))
    def queue(self, name: str) -> dict[str, Any] | None:
        """Kueue's LocalQueue, in the newest version that is served (before Kueue 0.14 there was v1beta1 alone)."""
        served = self.versions(KUEUE)
        known = QUEUES if QUEUES.version in served else replace(QUEUES, version="v1beta1")
        return self._requests.found(self._call("get", known, name))

    @needs(("", "nodes", "list"))
    def nodes(self) -> list[dict[str, Any]]:
        return self._requests.listed(self._call("list", NODES))

    @needs(("storage.k8s.io", "storageclasses", "get"))
    def storage_class(self, name: str) -> dict[str, Any] | None:
        return self._requests.found(self._call("get", STORAGE_CLASSES, name))

    @needs(("scheduling.k8s.io", "priorityclasses", "get"))
    def priority_class(self, name: str) -> dict[str, Any] | None:
        return self._requests.found(self._call("get", PRIORITY_CLASSES, name))

    def _call(self, verb: Verb, resource: Resource, name: str = "") -> Call:
        return Call(verb, resource, self.namespace, name)
