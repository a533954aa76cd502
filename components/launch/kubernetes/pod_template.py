"""Pods of a run: no privileges, no token, a root file system that cannot be written to, and limits on everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.config.kubernetes import PodSettings, S3State, Toleration, VolumeState
from components.launch.kubernetes.names import ATTEMPT, COMPONENT, METRICS_PORT, RUN
from components.launch.kubernetes.plan import USER, RolePlan, RunPlan, address, requests
from components.progress import PROGRESS_VARIABLE

RESTRICTED: dict[str, Any] = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
KUEUE_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
EVERYWHERE = {
    "HOME": "/tmp",
    "USER": "evenkeel",  # the image need not know the user's number
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",  # the code lies on a volume that many pods read
}
WORKSPACE, TMP, SHM = "workspace", "tmp", "shm"
"""Volumes."""
LINGER = 30
"""Seconds beyond their grace that whoever has lost another waits before it says so. A job has failed only when the last
of its pods has ended; were the loss seen before, the disruption would count."""


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
    if isinstance(plan.how.shared, S3State):
        spec["initContainers"] = [_fetch(plan, role, plan.how.shared)]
    if plan.how.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in plan.how.pull_secrets]
    metadata: dict[str, Any] = {"labels": {**plan.labels, COMPONENT: role.name}}
    annotations = dict[str, str]()
    if role.pods.topology and plan.how.queue:
        annotations[KUEUE_TOPOLOGY] = role.pods.topology  # Kueue places the pods that it admits
    if role.name == "learner" and role.count == 1:  # of several nodes the first alone has figures: see k8s/prometheus
        annotations |= {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS_PORT)}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {**spec, **_placement(plan, role)}}


def _identity(plan: RunPlan) -> dict[str, int]:
    return {"runAsUser": plan.submission.user, "runAsGroup": USER}


def _container(plan: RunPlan, role: RolePlan) -> dict[str, Any]:
    found = {
        "name": role.name,
        "image": role.image,
        "command": list(role.command),
        "workingDir": str(plan.workspace),
        "env": _environment(plan, role),
        "ports": [{"name": name, "containerPort": port} for name, port in role.ports.items()],
        "resources": _resources(role.pods),
        "securityContext": {**_identity(plan), **RESTRICTED},
        "volumeMounts": [_mount(plan), {"name": TMP, "mountPath": "/tmp"}, {"name": SHM, "mountPath": "/dev/shm"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return found | (_secrets(plan) if role.name == "learner" else {})


def _environment(plan: RunPlan, role: RolePlan) -> list[dict[str, Any]]:
    own = {**EVERYWHERE, "EVENKEEL_RUN": plan.submission.run, **role.env}
    if role.name == "learner":
        own |= {"EVENKEEL_CODE": plan.submission.code, "EVENKEEL_CONSTRAINTS": plan.submission.constraints}
        own |= {"EVENKEEL_LINGER": str(plan.how.grace + LINGER)}
        own |= {PROGRESS_VARIABLE: "/tmp/progress.jsonl"}  # lines in its log, and no bar
        own |= _bucket(plan.how.shared) if isinstance(plan.how.shared, S3State) else {}
    attempt = {"fieldRef": {"fieldPath": f"metadata.labels['{ATTEMPT}']"}}
    return [*_variables(own), {"name": "EVENKEEL_ATTEMPT", "valueFrom": attempt}]


def _variables(values: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in sorted(values.items())]


def _fetch(plan: RunPlan, role: RolePlan, shared: S3State) -> dict[str, Any]:
    """Brings the run's files into the folder; with the learner's image, which knows how. It may take what its pod has
    (but for GPUs) without the pod asking for more: they run one after the other."""
    files = address(plan.submission.run, plan.submission.stage, plan.how, shared)
    return {
        "name": "fetch",
        "image": plan.how.images.learner,
        "command": ["python", "-m", "components.pods.fetch", files, str(plan.workspace)],
        "env": _variables({**EVERYWHERE, **_bucket(shared)}),
        "resources": _resources(role.pods.model_copy(update={"gpus": 0})),
        "securityContext": {**_identity(plan), **RESTRICTED},
        "volumeMounts": [_mount(plan), {"name": TMP, "mountPath": "/tmp"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **_secrets(plan),
    }


def _secrets(plan: RunPlan) -> dict[str, Any]:
    return {"envFrom": [{"secretRef": {"name": name}} for name in plan.how.secrets]} if plan.how.secrets else {}


def _resources(pods: PodSettings) -> dict[str, Any]:
    """Requests are the limits too: a pod that uses more than it requests is the first to be evicted."""
    return {"requests": requests(pods), "limits": requests(pods)}


def _placement(plan: RunPlan, role: RolePlan) -> dict[str, Any]:
    """Fields of the pod's specification that say where it may run."""
    pods, affinity = role.pods, dict[str, Any]()
    if pods.topology and not plan.how.queue:
        same = {RUN: plan.labels[RUN], COMPONENT: role.name}
        term = {"labelSelector": {"matchLabels": same}, "topologyKey": pods.topology}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = {
        "nodeSelector": dict(sorted(pods.node_selector.items())),
        "tolerations": [_toleration(one) for one in pods.tolerations],
        "priorityClassName": pods.priority_class,
        "runtimeClassName": pods.runtime_class,
        "affinity": affinity,
    }
    return {name: value for name, value in spec.items() if value}


def _toleration(taint: Toleration) -> dict[str, Any]:
    operator = "Exists" if taint.value is None else "Equal"
    found = {"key": taint.key, "operator": operator, "value": taint.value, "effect": taint.effect}
    return {name: value for name, value in found.items() if value is not None}


def _mount(plan: RunPlan) -> dict[str, Any]:
    shared = plan.how.shared
    return {"name": WORKSPACE, "mountPath": shared.path if isinstance(shared, VolumeState) else str(plan.workspace)}


def _volumes(plan: RunPlan, role: RolePlan) -> list[dict[str, Any]]:
    """The run's files are on the claim, or in an empty folder that is filled first."""
    shared, disk = plan.how.shared, {"emptyDir": {"sizeLimit": role.pods.disk}}
    claimed = {"persistentVolumeClaim": {"claimName": shared.claim}} if isinstance(shared, VolumeState) else disk
    return [
        {"name": WORKSPACE, **claimed},
        {"name": TMP, **disk},
        {"name": SHM, "emptyDir": {"medium": "Memory", "sizeLimit": role.pods.shm}},
    ]


def _bucket(shared: S3State) -> dict[str, str]:
    """How the server that keeps the run's files is reached. Credentials come from Secrets."""
    found = {"AWS_ENDPOINT_URL_S3": shared.endpoint_url, "AWS_REGION": shared.region}
    return {name: value for name, value in found.items() if value}
