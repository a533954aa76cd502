"""`evenkeel doctor --kubernetes`: what could keep a run from a cluster, and the command that fixes it.

Here the server, its version, JobSet, the namespace, our rights there, and what the configuration names; `room` for what
is requested.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from components.checks import Check
from components.config import Settings
from components.config.kubernetes import KubernetesSettings, VolumeState
from components.config.shipped import install
from components.errors import CorrectableError
from components.launch.kubernetes.api import Cluster, Refused
from components.launch.kubernetes.api.resources import ACCOUNTS, NAMESPACES, PRIORITY_CLASSES, QUEUES, Resource
from components.launch.kubernetes.api.wording import INSTALL, PLATFORM, granting
from components.launch.kubernetes.doctor.room import RUN, bucket, claim, nodes, quotas, volume
from components.launch.kubernetes.names import GROUP, MAIN, VERSION
from components.launch.kubernetes.observed import labels, part
from components.launch.kubernetes.permissions import KUEUE, ROLES
from components.launch.kubernetes.plan import WORK, RunPlan, Submission, plan_run

NAMESPACE = "evenkeel"
"""The default."""
FORBIDDEN = 403
OLDEST, NEWEST = 34, 37
"""Minor versions of Kubernetes 1 that this was made for: those of JobSet 0.12, and of the client."""
CLIENT = "37"
ENFORCED = "pod-security.kubernetes.io/enforce"


def examine(settings: Settings) -> Iterator[Check]:
    """Every check, as far as there is a cluster; what the run requests only where the configuration has a section for
    it (`launch.kubernetes`).
    """
    how = settings.launch.kubernetes
    yield client()
    try:
        cluster = Cluster.connect(how.namespace if how else NAMESPACE, how.context if how else None)
    except CorrectableError as error:
        yield _failed("cluster", error)
        return
    yield reached(cluster)
    for name, found in ("jobset", installed(cluster)), ("namespace", namespace(cluster)), ("rights", rights(cluster)):
        yield from _as_far_as_possible(name, found)
    if how is None:
        fix = "name a configuration with launch.kubernetes: --config configs/kubernetes.yaml"
        yield Check("run", "warn", "the configuration has no launch.kubernetes, so a run's requests are unknown", fix)
        return
    try:
        plan = _demand(settings, how)
    except CorrectableError as error:
        yield _failed("run", error)
        return
    of_a_run = [
        ("account", account(cluster, plan)),
        ("queue", queue(cluster, plan)),
        ("quota", quotas(cluster, plan)),
        ("nodes", nodes(cluster, plan)),
    ]
    if isinstance(how.shared, VolumeState):
        of_a_run += [("claim", claim(cluster, how.shared)), ("volume", volume(how.shared, how.user))]
    else:
        of_a_run += [("bucket", bucket(how.shared))]
    classes = {role.pods.priority_class for role in plan.roles if role.pods.priority_class}
    of_a_run += [("priority", priority(cluster, name)) for name in sorted(classes)]
    for name, found in of_a_run:  # each alone: one that cannot be looked at leaves the others
        yield from _as_far_as_possible(name, found)


def _as_far_as_possible(name: str, found: Iterator[Check]) -> Iterator[Check]:
    """What a check finds. Where we may not look, nothing is known: that is a warning, and no reason to stop."""
    try:
        yield from found
    except CorrectableError as error:
        if isinstance(error, Refused) and error.status == FORBIDDEN:
            fix = f"have somebody look who may, or let us: k8s/base/doctor.yaml; {error.how or ''}"
            yield Check(name, "warn", f"it cannot be looked at: {error.what}", fix.rstrip("; "))
        else:
            yield _failed(name, error)


def _failed(name: str, error: CorrectableError) -> Check:
    where = f" ({error.where})" if error.where else ""
    return Check(name, "fail", f"{error.what}{where}", error.how or "")


def _demand(settings: Settings, how: KubernetesSettings) -> RunPlan:
    """The plan of a training run that is never submitted, in a folder that pods would see."""
    folder = Path(how.shared.path if isinstance(how.shared, VolumeState) else WORK) / RUN
    return plan_run(settings, Submission(MAIN, folder, RUN, how.owner or RUN, "", "", datetime.now(UTC)))


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
    name = cluster.namespace
    found = cluster.found(NAMESPACES, name)
    level = labels(found or {}).get(ENFORCED)
    if found is None:
        fix = f"{PLATFORM}, or set launch.kubernetes.namespace"
        yield Check("namespace", "fail", f"there is no namespace {name}", fix)
    elif part(found, "status").get("phase") == "Terminating":
        yield Check("namespace", "fail", f"{name} is being deleted", "wait, then create it again, or use another")
    elif level == "restricted":
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
    fix = f"{PLATFORM}, or correct launch.kubernetes.service_account"
    yield _there(cluster, "account", "service account", ACCOUNTS, plan.how.service_account, fix)


def queue(cluster: Cluster, plan: RunPlan) -> Iterator[Check]:
    """Without it a run would wait for ever. Its version is the newest that is served: before Kueue 0.14 v1beta1."""
    if plan.how.queue:
        served = QUEUES if QUEUES.version in cluster.versions(KUEUE) else replace(QUEUES, version="v1beta1")
        fix = f"kubectl -n {cluster.namespace} get localqueues; correct launch.kubernetes.queue, or leave it out"
        yield _there(cluster, "queue", "LocalQueue", served, plan.how.queue, fix)


def priority(cluster: Cluster, name: str) -> Iterator[Check]:
    """Pods with a PriorityClass that is not there are refused."""
    fix = "kubectl get priorityclasses; correct the priority_class of learner or rollout"
    yield _there(cluster, "priority", "PriorityClass", PRIORITY_CLASSES, name, fix)


def _there(cluster: Cluster, check: str, kind: str, resource: Resource, name: str, fix: str) -> Check:
    """Whether there is an object of this name."""
    if cluster.found(resource, name) is not None:
        return Check(check, "ok", name)
    space = f" in {cluster.namespace}" if resource.namespaced else ""
    return Check(check, "fail", f"there is no {kind} {name}{space}", fix)
