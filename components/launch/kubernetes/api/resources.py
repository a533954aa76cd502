"""Kinds of objects, where they are found, and which requests they allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from components.launch.kubernetes.names import GROUP, KIND, PLURAL, VERSION
from components.launch.kubernetes.permissions import KUEUE, Permission

Verb = Literal["get", "list", "watch", "create", "delete"]


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object. ``namespaced`` is false for those of the whole cluster."""

    kind: str
    group: str
    version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str, name: str = "", part: str = "") -> str:
        """The address below the server's."""
        start = f"/apis/{self.group}" if self.group else "/api"
        middle = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced else ""
        end = "".join(f"/{quote(one, safe='')}" for one in (name, part) if one)
        return f"{start}/{self.version}{middle}/{self.plural}{end}"


JOBSETS = Resource(KIND, GROUP, VERSION, PLURAL)
JOBS = Resource("Job", "batch", "v1", "jobs")
PODS = Resource("Pod", "", "v1", "pods")
EVENTS = Resource("Event", "", "v1", "events")
QUOTAS = Resource("ResourceQuota", "", "v1", "resourcequotas")
CLAIMS = Resource("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims")
ACCOUNTS = Resource("ServiceAccount", "", "v1", "serviceaccounts")
QUEUES = Resource("LocalQueue", KUEUE, "v1beta2", "localqueues")
NAMESPACES = Resource("Namespace", "", "v1", "namespaces", namespaced=False)
NODES = Resource("Node", "", "v1", "nodes", namespaced=False)
STORAGE_CLASSES = Resource("StorageClass", "storage.k8s.io", "v1", "storageclasses", namespaced=False)
PRIORITY_CLASSES = Resource("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
ACCESS_REVIEWS = Resource(
    "SelfSubjectAccessReview", "authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False
)


@dataclass(frozen=True, slots=True)
class Call:
    """One request: a verb and its object."""

    verb: Verb
    resource: Resource
    namespace: str
    name: str = ""
    part: str = ""
    """A subresource, such as log."""

    @property
    def path(self) -> str:
        # What is created is named in the body.
        return self.resource.path(
            self.namespace, "" if self.verb in ("create", "list", "watch") else self.name, self.part
        )

    @property
    def permission(self) -> Permission:
        return self.resource.group, "/".join(filter(None, (self.resource.plural, self.part))), self.verb

    @property
    def what(self) -> str:
        """Kind and name of the object, such as ``JobSet demo-1``."""
        return " ".join(filter(None, (self.resource.kind if self.name else self.resource.plural, self.name, self.part)))

    @property
    def look(self) -> str:
        """The command that shows the object."""
        return f"kubectl -n {self.namespace} get {self.resource.plural} {self.name}"
