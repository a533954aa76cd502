"""How pods get at the run's files: a claim that many nodes may write to, or a bucket with conditional writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from components.checks import Check
from components.config.kubernetes import S3State, VolumeState
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.api.resources import CLAIMS, STORAGE_CLASSES
from components.launch.kubernetes.observed import Object, part
from components.launch.kubernetes.plan import RunPlan

MANY = "ReadWriteMany"
LATER = "WaitForFirstConsumer"


def claim(cluster: Cluster, plan: RunPlan) -> Iterator[Check]:
    """It is there, bound or going to be, and may be mounted by many nodes."""
    how = plan.how.shared
    if not isinstance(how, VolumeState):
        return
    found = cluster.found(CLAIMS, how.claim)
    section = "launch.kubernetes.shared.claim"
    if found is None:
        fix = f"create it (k8s/components/shared-volume), or correct {section}"
        yield Check("claim", "fail", f"there is no claim {how.claim} in {cluster.namespace}", fix)
        return
    modes = part(found, "spec").get("accessModes") or []
    if MANY not in modes:
        fix = f"create a claim with accessModes [{MANY}] (k8s/components/shared-volume) and name it in {section}"
        yield Check("claim", "fail", f"{how.claim} is {', '.join(modes)}: pods on several nodes need {MANY}", fix)
        return
    phase = part(found, "status").get("phase")
    if phase == "Bound":
        yield Check("claim", "ok", f"{how.claim}, {MANY}, bound")
    else:
        yield _unbound(cluster, how.claim, str(phase), found)


def _unbound(cluster: Cluster, name: str, phase: str, found: Object) -> Check:
    """Whether a claim without a volume is going to get one."""
    kind = part(found, "spec").get("storageClassName")
    fix = f"kubectl -n {cluster.namespace} describe pvc {name}"
    if phase == "Lost":
        return Check("claim", "fail", f"the volume of {name} is gone", fix)
    if not kind:
        return Check("claim", "warn", f"{name} has no volume yet, and names no storage class that makes one", fix)
    storage = cluster.found(STORAGE_CLASSES, kind)
    if storage is None:
        return Check("claim", "fail", f"{name} waits for a storage class {kind}, which is not there", fix)
    if storage.get("volumeBindingMode") == LATER:
        return Check("claim", "ok", f"{name}, {MANY}, gets its volume of {kind} with the first pod")
    return Check("claim", "warn", f"{name} has no volume yet (storage class {kind})", fix)


def volume(_: Cluster, plan: RunPlan) -> Iterator[Check]:
    """Runs are submitted from a folder on the volume, by somebody whom pods may be."""
    how = plan.how.shared
    if not isinstance(how, VolumeState):
        return
    if not Path(how.path).is_dir():
        fix = f"mount {how.claim} at {how.path} where runs are submitted, or set launch.kubernetes.shared.kind s3"
        yield Check("volume", "warn", f"{how.path} is not on this machine, so no run can be submitted from here", fix)
    elif os.getuid() == 0 and plan.how.user is None:
        fix = "submit runs as another user, or set launch.kubernetes.user, and let that user write there"
        yield Check("volume", "fail", f"{how.path} is here, but you are root, and pods never are", fix)
    else:
        yield Check("volume", "ok", f"{how.path} is here")


def bucket(_: Cluster, plan: RunPlan) -> Iterator[Check]:
    """What two writers must never do, its server must refuse."""
    how = plan.how.shared
    if not isinstance(how, S3State):
        return
    from components.pods.depot import Depot  # loads boto3
    from components.registry.s3.examined import examined

    otherwise = "use a server with conditional writes, such as AWS S3 or MinIO, or launch.kubernetes.shared.kind volume"
    place = Depot(f"{how.uri}/{plan.submission.run}", how.endpoint_url, how.region).bucket("state")
    yield examined("bucket", place, how.uri, otherwise)
