"""How pods get at the run's files: a claim that many nodes may write to, or a bucket with conditional writes."""

from __future__ import annotations

import os
from pathlib import Path

from components.checks import Check
from components.config.kubernetes import S3State, VolumeState
from components.errors import EvenkeelError
from components.launch.kubernetes.api import Examination
from components.launch.kubernetes.doctor.demand import RUN
from components.launch.kubernetes.doctor.looking import Found, looks_at
from components.launch.kubernetes.observed import Object
from components.launch.kubernetes.plan import RunPlan

MANY = "ReadWriteMany"
LATER = "WaitForFirstConsumer"


def shared(look: Examination, plan: RunPlan) -> Found:
    how = plan.how.shared
    if isinstance(how, S3State):
        yield bucket(how)
        return
    yield from claim(look, how)
    yield here(how, plan.how.user)


@looks_at("claim")
def claim(look: Examination, how: VolumeState) -> Found:
    """It is there, bound or going to be, and may be mounted by many nodes."""
    found = look.claim(how.claim)
    section = "launch.kubernetes.shared.claim"
    if found is None:
        fix = f"create it (k8s/components/shared-volume), or correct {section}"
        yield Check("claim", "fail", f"there is no claim {how.claim} in {look.namespace}", fix)
        return
    modes = (found.get("spec") or {}).get("accessModes") or []
    if MANY not in modes:
        fix = f"create a claim with accessModes [{MANY}] (k8s/components/shared-volume) and name it in {section}"
        yield Check("claim", "fail", f"{how.claim} is {', '.join(modes)}: pods on several nodes need {MANY}", fix)
        return
    phase = (found.get("status") or {}).get("phase")
    if phase == "Bound":
        yield Check("claim", "ok", f"{how.claim}, {MANY}, bound")
    else:
        yield _unbound(look, how.claim, str(phase), found)


def _unbound(look: Examination, name: str, phase: str, found: Object) -> Check:
    """Whether a claim without a volume is going to get one."""
    kind = (found.get("spec") or {}).get("storageClassName")
    fix = f"kubectl -n {look.namespace} describe pvc {name}"
    if phase == "Lost":
        return Check("claim", "fail", f"the volume of {name} is gone", fix)
    if not kind:
        return Check("claim", "warn", f"{name} has no volume yet, and names no storage class that makes one", fix)
    storage = look.storage_class(kind)
    if storage is None:
        return Check("claim", "fail", f"{name} waits for a storage class {kind}, which is not there", fix)
    if storage.get("volumeBindingMode") == LATER:
        return Check("claim", "ok", f"{name}, {MANY}, gets its volume of {kind} with the first pod")
    return Check("claim", "warn", f"{name} has no volume yet (storage class {kind})", fix)


def here(how: VolumeState, user: int | None) -> Check:
    """Runs are submitted from a folder on the volume, by somebody whom pods may be."""
    if Path(how.path).is_dir():
        if os.getuid() == 0 and user is None:
            fix = "submit runs as another user, or set launch.kubernetes.user, and let that user write there"
            return Check("volume", "fail", f"{how.path} is here, but you are root, and pods never are", fix)
        return Check("volume", "ok", f"{how.path} is here")
    fix = f"mount {how.claim} at {how.path} where runs are submitted, or set launch.kubernetes.shared.kind s3"
    return Check("volume", "warn", f"{how.path} is not on this machine, so no run can be submitted from here", fix)


def bucket(how: S3State) -> Check:
    """What two writers must never do, its server must refuse."""
    from components.pods.depot import Depot  # loads boto3
    from components.registry.s3.examined import examined

    otherwise = "use a server with conditional writes, such as AWS S3 or MinIO, or launch.kubernetes.shared.kind volume"
    try:
        place = Depot(f"{how.uri}/{RUN}", how.endpoint_url, how.region).bucket("state")
    except EvenkeelError as error:
        return Check("bucket", "fail", f"{error.what} ({error.where})", error.how or "")
    return examined("bucket", place, how.uri, otherwise)
