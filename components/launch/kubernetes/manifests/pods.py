"""Pods of a run: no privileges, no token, a root file system that cannot be written to, and limits on everything."""

from __future__ import annotations

from typing import Any

from components.config.kubernetes import PodSettings
from components.launch.kubernetes.manifests import state
from components.launch.kubernetes.manifests.failures import linger
from components.launch.kubernetes.manifests.placing import placement
from components.launch.kubernetes.names import ATTEMPT, COMPONENT, METRICS_PORT
from components.launch.kubernetes.plan import USER, RolePlan, RunPlan
from components.progress import PROGRESS_VARIABLE

GPU = "nvidia.com/gpu"
RESTRICTED: dict[str, Any] = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
EVERYWHERE = {
    "HOME": "/tmp",
    "USER": "evenkeel",  # the image need not know the user's number
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",  # the code lies on a volume that many pods read
}
TMP, SHM = "tmp", "shm"


def template(plan: RunPlan, role: RolePlan, grace: int, **container: Any) -> dict[str, Any]:
    """The pod template of a role; ``container`` are further fields of its one container."""
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": plan.how.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace,
        "securityContext": {
            "runAsNonRoot": True,
            **_identity(plan),
            "fsGroup": USER,  # always the same one, or people would take a volume from each other
            "fsGroupChangePolicy": "OnRootMismatch",  # or every start would walk the whole volume
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{**_container(plan, role), **container}],
        "volumes": _volumes(plan, role),
    }
    if fetch := state.fetch_command(plan):
        spec["initContainers"] = [_fetch(plan, role, fetch)]
    if plan.how.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in plan.how.pull_secrets]
    metadata: dict[str, Any] = {"labels": {**plan.labels, COMPONENT: role.name}}
    annotations, placed = placement(plan, role)
    if role.name == "learner" and role.count == 1:  # of several nodes the first alone has figures: see k8s/prometheus
        annotations |= {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS_PORT)}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {**spec, **placed}}


def _identity(plan: RunPlan) -> dict[str, int]:
    return {"runAsUser": plan.submission.user, "runAsGroup": USER}


def _container(plan: RunPlan, role: RolePlan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": role.name,
        "image": role.image,
        "command": list(role.command),
        "workingDir": str(plan.workspace),
        "env": _environment(plan, role),
        "ports": [{"name": name, "containerPort": port} for name, port in role.ports.items()],
        "resources": _resources(role.pods),
        "securityContext": {**_identity(plan), **RESTRICTED},
        "volumeMounts": [
            state.mount(plan),
            {"name": TMP, "mountPath": "/tmp"},
            {"name": SHM, "mountPath": "/dev/shm"},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if role.name == "learner" and plan.how.secrets:
        found["envFrom"] = _secrets(plan)
    return found


def _environment(plan: RunPlan, role: RolePlan) -> list[dict[str, Any]]:
    own = {**EVERYWHERE, "EVENKEEL_RUN": plan.submission.run, **role.env}
    if role.name != "rollout":
        own |= {"EVENKEEL_CODE": plan.submission.code, "EVENKEEL_CONSTRAINTS": plan.submission.constraints}
        own |= {"EVENKEEL_LINGER": str(linger(plan.how.grace))}
        own |= {PROGRESS_VARIABLE: "/tmp/progress.jsonl", **state.environment(plan)}  # lines in its log, and no bar
    attempt = {"fieldRef": {"fieldPath": f"metadata.labels['{ATTEMPT}']"}}
    variables: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in sorted(own.items())]
    variables.append({"name": "EVENKEEL_ATTEMPT", "valueFrom": attempt})
    return variables


def _fetch(plan: RunPlan, role: RolePlan, command: list[str]) -> dict[str, Any]:
    """Brings the run's files into the folder; with the learner's image, which knows how. It may take what its pod has
    (but for GPUs) without the pod asking for more: they run one after the other."""
    own = {**EVERYWHERE, **state.environment(plan)}
    found: dict[str, Any] = {
        "name": "fetch",
        "image": plan.how.images.learner,
        "command": command,
        "env": [{"name": name, "value": value} for name, value in sorted(own.items())],
        "resources": _resources(role.pods.model_copy(update={"gpus": 0})),
        "securityContext": {**_identity(plan), **RESTRICTED},
        "volumeMounts": [state.mount(plan), {"name": TMP, "mountPath": "/tmp"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return {**found, "envFrom": _secrets(plan)} if plan.how.secrets else found


def _secrets(plan: RunPlan) -> list[dict[str, Any]]:
    return [{"secretRef": {"name": name}} for name in plan.how.secrets]


def _resources(pods: PodSettings) -> dict[str, Any]:
    """Requests are the limits too: a pod that uses more than it requests is the first to be evicted."""
    amounts = {"cpu": pods.cpu, "memory": pods.memory, "ephemeral-storage": pods.disk}
    amounts |= {GPU: str(pods.gpus)} if pods.gpus else {}
    return {"requests": dict(amounts), "limits": dict(amounts)}


def _volumes(plan: RunPlan, role: RolePlan) -> list[dict[str, Any]]:
    return [
        state.volume(plan, role),
        {"name": TMP, "emptyDir": {"sizeLimit": role.pods.disk}},
        {"name": SHM, "emptyDir": {"medium": "Memory", "sizeLimit": role.pods.shm}},
    ]
