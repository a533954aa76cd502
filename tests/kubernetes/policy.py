"""What every pod of ours must be. `violations` says of a manifest what is not so, a line for each container and rule.

Stricter than Kubernetes' own "restricted" level, which knows neither limits nor images nor tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

Manifest = dict[str, Any]
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
"""Kinds of volumes that the restricted level allows: nothing of the node's own."""
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
COMPUTE = ("cpu", "memory")


def violations(manifest: Manifest, may_have_token: Collection[str] = ()) -> list[str]:
    """What is wrong with the pods of a manifest. Pods of the accounts ``may_have_token`` may mount a token."""
    return [
        f"{manifest['kind']}/{name_of(manifest)} {where}: {rule}"
        for where, pod in pod_specs(manifest)
        for rule in [
            *(f"{name}: {said}" for name, rule in POD_RULES.items() for said in rule(pod)),
            *_token(pod, may_have_token),
            *(
                f"{container.get('name', '?')}: {name}: {said}"
                for container in containers(pod)
                for name, rule in CONTAINER_RULES.items()
                for said in rule(container, pod)
            ),
        ]
    ]


def name_of(manifest: Manifest) -> str:
    metadata = manifest.get("metadata", {})
    return str(metadata.get("name") or metadata.get("generateName", "?"))


def pod_specs(manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
    """The pod specs of a manifest of any kind, each with where it is; none where it has no pods."""
    spec = manifest.get("spec", {})
    match manifest.get("kind"):
        case "Pod":
            yield "", spec
        case "CronJob":
            yield "jobTemplate", spec["jobTemplate"]["spec"]["template"]["spec"]
        case "JobSet":
            for job in spec["replicatedJobs"]:
                yield job["name"], job["template"]["spec"]["template"]["spec"]
        case _ if isinstance(spec, dict) and "template" in spec:  # Job, Deployment, StatefulSet, DaemonSet
            yield "template", spec["template"]["spec"]


def containers(pod: Manifest) -> Iterator[Manifest]:
    for key in CONTAINERS:
        yield from pod.get(key, [])


def _security(part: Manifest) -> Manifest:
    return part.get("securityContext") or {}


def _host(pod: Manifest) -> Iterator[str]:
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(key):
            yield f"{key} is the node's own"


def _volumes(pod: Manifest) -> Iterator[str]:
    for volume in pod.get("volumes", []):
        for kind in sorted(set(volume) - {"name"} - VOLUMES):
            yield f"{volume['name']} is a {kind}"


def _account(pod: Manifest) -> Iterator[str]:
    if pod.get("serviceAccountName", "default") == "default":
        yield "it names no service account"


def _links(pod: Manifest) -> Iterator[str]:
    if pod.get("enableServiceLinks") is not False:
        yield "enableServiceLinks is not false: every service of the namespace becomes variables"


def _token(pod: Manifest, allowed: Collection[str]) -> Iterator[str]:
    if pod.get("automountServiceAccountToken") is not False and pod.get("serviceAccountName") not in allowed:
        yield "token: automountServiceAccountToken is not false"


def _non_root(container: Manifest, pod: Manifest) -> Iterator[str]:
    own, shared = _security(container), _security(pod)
    if own.get("runAsNonRoot", shared.get("runAsNonRoot")) is not True:
        yield "runAsNonRoot is not true"
    if not own.get("runAsUser", shared.get("runAsUser")):
        yield "runAsUser is no number above 0"


def _escalation(container: Manifest, pod: Manifest) -> Iterator[str]:
    if _security(container).get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    if _security(container).get("privileged"):
        yield "it is privileged"


def _capabilities(container: Manifest, pod: Manifest) -> Iterator[str]:
    capabilities = _security(container).get("capabilities") or {}
    if "ALL" not in capabilities.get("drop", []):
        yield "not all are dropped"
    if capabilities.get("add"):
        yield f"{', '.join(capabilities['add'])} added"


def _read_only(container: Manifest, pod: Manifest) -> Iterator[str]:
    if _security(container).get("readOnlyRootFilesystem") is not True:
        yield "readOnlyRootFilesystem is not true"


def _seccomp(container: Manifest, pod: Manifest) -> Iterator[str]:
    profile = _security(container).get("seccompProfile", _security(pod).get("seccompProfile")) or {}
    if profile.get("type") != "RuntimeDefault":
        yield "the profile is not RuntimeDefault"


def _resources(container: Manifest, pod: Manifest) -> Iterator[str]:
    resources = container.get("resources") or {}
    for kind in ("requests", "limits"):
        for name in COMPUTE:
            if name not in (resources.get(kind) or {}):
                yield f"no {kind} of {name}"


def _image(container: Manifest, pod: Manifest) -> Iterator[str]:
    image = str(container.get("image", ""))
    if not DIGEST.search(image):
        yield f"{image or 'none'} has no digest"
    if ":latest" in image:
        yield f"{image} says latest"


def _ports(container: Manifest, pod: Manifest) -> Iterator[str]:
    for port in container.get("ports", []):
        if port.get("hostPort"):
            yield f"{port['hostPort']} of the node"


POD_RULES: dict[str, Callable[[Manifest], Iterator[str]]] = {
    "host": _host,
    "volumes": _volumes,
    "account": _account,
    "service links": _links,
}
CONTAINER_RULES: dict[str, Callable[[Manifest, Manifest], Iterator[str]]] = {
    "non-root": _non_root,
    "escalation": _escalation,
    "capabilities": _capabilities,
    "read-only": _read_only,
    "seccomp": _seccomp,
    "resources": _resources,
    "image": _image,
    "ports": _ports,
}
