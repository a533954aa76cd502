"""The server, its version, JobSet, the namespace, what we may do there, and what the configuration names there."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import replace

from components.checks import Check
from components.config.shipped import install
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.api.resources import ACCOUNTS, NAMESPACES, PRIORITY_CLASSES, QUEUES
from components.launch.kubernetes.api.wording import INSTALL, PLATFORM, granting
from components.launch.kubernetes.names import GROUP, VERSION
from components.launch.kubernetes.observed import labels, part
from components.launch.kubernetes.permissions import KUEUE, ROLES
from components.launch.kubernetes.plan import RunPlan

OLDEST, NEWEST = 34, 37
"""Minor versions of Kubernetes 1 that this was made for: those of JobSet 0.12, and of the client."""
CLIENT = "37"
ENFORCED = "pod-security.kubernetes.io/enforce"


def client() -> Check:
    """The package that talks to clusters."""
    try:
        version = importlib.metadata.version("kubernetes")
    except importlib.metadata.PackageNotFoundError:
        return Check("client", "fail", "the package kubernetes is missing", install())
    if version.partition(".")[0] != CLIENT:
        return Check("client", "warn", f"kubernetes {version}, tested {CLIENT}", f"{install()} gives the tested one")
    return Check("client", "ok", f"kubernetes {version}")


def reached(cluster: Cluster) -> Check:
    """The server, which has answered already."""
    version = cluster.version()
    finding = f"{cluster.server}, {version or 'of an unknown version'}"
    found = re.match(r"v1\.(\d+)", version)
    if found and OLDEST <= int(found[1]) <= NEWEST:
        return Check("cluster", "ok", finding)
    return Check("cluster", "warn", finding, f"this was made for Kubernetes 1.{OLDEST} to 1.{NEWEST}")


def installed(cluster: Cluster) -> Iterator[Check]:
    """What makes pods of a run."""
    versions = cluster.versions(GROUP)
    if not versions:
        yield Check("jobset", "fail", f"not installed: nothing serves {GROUP}", INSTALL)
    elif VERSION not in versions:
        yield Check("jobset", "fail", f"served as {', '.join(versions)}, needed is {VERSION}", INSTALL)
    else:
        yield Check("jobset", "ok", f"{GROUP}/{VERSION}")


def namespace(cluster: Cluster) -> Iterator[Check]:
    """Whether it is there, and whether it keeps pods from privileges."""
    found = cluster.found(NAMESPACES, cluster.namespace)
    name = cluster.namespace
    if found is None:
        fix = f"{PLATFORM}, or set launch.kubernetes.namespace"
        yield Check("namespace", "fail", f"there is no namespace {name}", fix)
        return
    if part(found, "status").get("phase") == "Terminating":
        yield Check("namespace", "fail", f"{name} is being deleted", "wait, then create it again, or use another")
        return
    level = labels(found).get(ENFORCED)
    if level == "restricted":
        yield Check("namespace", "ok", f"{name}, pods are {level}")
    else:
        fix = f"kubectl label namespace {name} {ENFORCED}=restricted: runs satisfy it"
        yield Check("namespace", "warn", f"{name} does not enforce restricted pods ({level or 'no level'})", fix)


def rights(cluster: Cluster) -> Iterator[Check]:
    """What a run needs, one line for each that is missing."""
    needed = sorted(ROLES["launcher"])
    missing = [one for one in needed if not cluster.may(one)]
    for one in missing:
        fix = granting(one, cluster.namespace)
        yield Check("rights", "fail", f"may not {one[2]} {one[1]} in {cluster.namespace}", fix)
    if not missing:
        yield Check("rights", "ok", f"all {len(needed)} that a run needs")


def account(cluster: Cluster, plan: RunPlan) -> Iterator[Check]:
    """Of the pods."""
    name = plan.how.service_account
    if cluster.found(ACCOUNTS, name) is None:
        fix = f"{PLATFORM}, or correct launch.kubernetes.service_account"
        yield Check("account", "fail", f"there is no service account {name} in {cluster.namespace}", fix)
    else:
        yield Check("account", "ok", name)


def queue(cluster: Cluster, plan: RunPlan) -> Iterator[Check]:
    """Without it a run would wait for ever. Its version is the newest that is served: before Kueue 0.14 v1beta1."""
    name = plan.how.queue
    if not name:
        return
    served = cluster.versions(KUEUE)
    if cluster.found(QUEUES if QUEUES.version in served else replace(QUEUES, version="v1beta1"), name) is None:
        fix = f"kubectl -n {cluster.namespace} get localqueues; correct launch.kubernetes.queue, or leave it out"
        yield Check("queue", "fail", f"there is no LocalQueue {name} in {cluster.namespace}", fix)
    else:
        yield Check("queue", "ok", name)


def priority_classes(plan: RunPlan) -> list[str]:
    """The names of those that a run needs."""
    return sorted({role.pods.priority_class for role in plan.roles if role.pods.priority_class})


def priority(cluster: Cluster, name: str) -> Iterator[Check]:
    """Pods with a PriorityClass that is not there are refused."""
    if cluster.found(PRIORITY_CLASSES, name) is None:
        fix = "kubectl get priorityclasses; correct the priority_class of learner or rollout"
        yield Check("priority", "fail", f"there is no PriorityClass {name}", fix)
    else:
        yield Check("priority", "ok", name)
