"""How a pod gets at the run's files."""

from __future__ import annotations

from typing import Any

from components.config.kubernetes import S3State, VolumeState
from components.launch.kubernetes.plan import RolePlan, RunPlan, address

VOLUME = "workspace"


def volume(plan: RunPlan, role: RolePlan) -> dict[str, Any]:
    """The claim, or an empty folder that is filled first."""
    if isinstance(plan.how.shared, VolumeState):
        return {"name": VOLUME, "persistentVolumeClaim": {"claimName": plan.how.shared.claim}}
    return {"name": VOLUME, "emptyDir": {"sizeLimit": role.pods.disk}}


def mount(plan: RunPlan) -> dict[str, Any]:
    shared = plan.how.shared
    return {"name": VOLUME, "mountPath": shared.path if isinstance(shared, VolumeState) else str(plan.workspace)}


def fetch_command(plan: RunPlan) -> list[str] | None:
    """What fills the folder; None where there is nothing to fetch."""
    shared = plan.how.shared
    if not isinstance(shared, S3State):
        return None
    of = address(plan.submission.run, plan.submission.stage, plan.how, shared)
    return ["python", "-m", "components.pods.fetch", of, str(plan.workspace)]


def environment(plan: RunPlan) -> dict[str, str]:
    """How the server that keeps the run's files is reached. Credentials come from Secrets."""
    shared = plan.how.shared
    if not isinstance(shared, S3State):
        return {}
    found = {"AWS_ENDPOINT_URL_S3": shared.endpoint_url} if shared.endpoint_url else {}
    return found | ({"AWS_REGION": shared.region} if shared.region else {})
