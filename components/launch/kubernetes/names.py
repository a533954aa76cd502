"""What a run's objects are called, and how they are found again."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from components.errors import InputError

Role = Literal["learner", "rollout"]
GROUP, VERSION, KIND, PLURAL = "jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"
RUN, OWNER = "evenkeel/run", "evenkeel/owner"
"""Labels: the run and whom it belongs to."""
SPEC, STAGE, DEADLINE, WORKSPACE = "evenkeel/spec", "evenkeel/stage", "evenkeel/deadline", "evenkeel/workspace"
"""Annotations of a JobSet: digest of what it requests, its stage, when it must be over, and where it was submitted."""
COMPONENT = "app.kubernetes.io/component"
OURS = {"app.kubernetes.io/name": "evenkeel", "app.kubernetes.io/managed-by": "evenkeel"}
SELECTOR = ",".join(f"{key}={value}" for key, value in OURS.items())
"""Finds the objects of all runs."""
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""Label that JobSet writes on pods: 0, then one more after each restart."""
QUEUE = "kueue.x-k8s.io/queue-name"
"""Label by which Kueue holds a run until there is quota."""
GPU = "nvidia.com/gpu"
MAIN = "train"
"""The stage that a run is known by."""
LONGEST = 40
"""Characters of a JobSet's name: pods are called <name>-learner-0-<index>-<five more>, at most 63."""
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
DNS = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
HTTP_PORT, RENDEZVOUS_PORT, METRICS_PORT = 8000, 29500, 9400


def jobset_name(run: str, stage: str = MAIN) -> str:
    """The name of a run's JobSet: the run's id, with the stage where it is not training; where that is too long or no
    DNS name, its beginning and a digest."""
    wanted = run if stage == MAIN else f"{run}-{stage}"
    if DNS.fullmatch(wanted) and len(wanted) <= LONGEST:
        return wanted
    start = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[: LONGEST - 13]
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:8]
    return f"run-{start}-{digest}".replace("--", "-")


def labels(run: str, owner: str) -> dict[str, str]:
    """Of every object of a run.

    Raises:
        InputError: one of them cannot be a label.
    """
    for what, value, how in (
        ("the run's id", run, "rename the run's folder"),
        ("the owner", owner, "set launch.kubernetes.owner to letters, digits, '.', '_' and '-'"),
    ):
        if not LABEL.fullmatch(value):
            raise InputError(f"{what} {value!r} cannot be a label of Kubernetes: 63 characters at most", how=how)
    return {**OURS, "app.kubernetes.io/part-of": "evenkeel", RUN: run, OWNER: owner}


def host(name: str, role: Role, index: int) -> str:
    """Where a pod is found by the others of its JobSet, in the same namespace."""
    return f"{name}-{role}-0-{index}.{name}"
