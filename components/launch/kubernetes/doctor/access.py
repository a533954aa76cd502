"""The server, its version, JobSet, the namespace, and what we may do there."""

from __future__ import annotations

import importlib.metadata
import re

from components.checks import Check
from components.config.shipped import install
from components.launch.kubernetes.api import Cluster, Examination
from components.launch.kubernetes.api.wording import INSTALL, PLATFORM
from components.launch.kubernetes.doctor.looking import Found, looks_at
from components.launch.kubernetes.names import GROUP, VERSION
from components.launch.kubernetes.permissions import ROLES, Permission

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


def reached(cluster: Cluster, look: Examination) -> Check:
    """The server, which has answered already."""
    version = cluster.version()
    finding = f"{look.server}, {version or 'of an unknown version'}"
    found = re.match(r"v1\.(\d+)", version)
    if found and OLDEST <= int(found[1]) <= NEWEST:
        return Check("cluster", "ok", finding)
    return Check("cluster", "warn", finding, f"this was made for Kubernetes 1.{OLDEST} to 1.{NEWEST}")


@looks_at("jobset")
def installed(look: Examination) -> Found:
    """What makes pods of a run."""
    versions = look.versions(GROUP)
    if not versions:
        yield Check("jobset", "fail", f"not installed: nothing serves {GROUP}", INSTALL)
    elif VERSION not in versions:
        yield Check("jobset", "fail", f"served as {', '.join(versions)}, needed is {VERSION}", INSTALL)
    else:
        yield Check("jobset", "ok", f"{GROUP}/{VERSION}")


@looks_at("namespace")
def namespace(look: Examination) -> Found:
    """Whether it is there, and whether it keeps pods from privileges."""
    found = look.described()
    name = look.namespace
    if found is None:
        fix = f"{PLATFORM}, or set launch.kubernetes.namespace"
        yield Check("namespace", "fail", f"there is no namespace {name}", fix)
        return
    if (found.get("status") or {}).get("phase") == "Terminating":
        yield Check("namespace", "fail", f"{name} is being deleted", "wait, then create it again, or use another")
        return
    level = (found["metadata"].get("labels") or {}).get(ENFORCED)
    if level == "restricted":
        yield Check("namespace", "ok", f"{name}, pods are {level}")
    else:
        fix = f"kubectl label namespace {name} {ENFORCED}=restricted: runs satisfy it"
        yield Check("namespace", "warn", f"{name} does not enforce restricted pods ({level or 'no level'})", fix)


@looks_at("rights")
def rights(look: Examination) -> Found:
    """What a run needs, one line for each that is missing."""
    needed = sorted(ROLES["launcher"])
    missing = [one for one in needed if not look.may(one)]
    for one in missing:
        yield Check("rights", "fail", f"may not {one[2]} {one[1]} in {look.namespace}", _grant(look, one))
    if not missing:
        yield Check("rights", "ok", f"all {len(needed)} that a run needs")


def _grant(look: Examination, permission: Permission) -> str:
    group, resource, verb = permission
    plain, _, part = resource.partition("/")
    access = f"{verb} {plain}{f'.{group}' if group else ''}{f' --subresource={part}' if part else ''}"
    granting = f"{PLATFORM} grants it to evenkeel-launcher, k8s/components/operators to people"
    return f"{granting}; check: kubectl auth can-i {access} -n {look.namespace}"
