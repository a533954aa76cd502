"""One JobSet: the run."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from components.config.servers import ServerEngine
from components.launch.kubernetes.manifests.failures import all_or_nothing, jobset_policy, one_by_one
from components.launch.kubernetes.manifests.pods import template
from components.launch.kubernetes.manifests.probes import DRAIN, server_probes
from components.launch.kubernetes.names import (
    DEADLINE,
    GROUP,
    KIND,
    SPEC,
    STAGE,
    VERSION,
    WORKSPACE,
)
from components.launch.kubernetes.plan import RolePlan, RunPlan

SERVER_GRACE = 60
"""Seconds that a server has to end, its drain included."""
QUEUE = "kueue.x-k8s.io/queue-name"


def jobset(plan: RunPlan) -> dict[str, Any]:
    """The run's JobSet. It succeeds when the learner does, and servers that are running then are ended.

    Jobs do not wait for one another (`dependsOn` deadlocks where a scheduler places all pods or none): rank 0 waits for
    servers and other ranks by itself, and states which one it misses.
    """
    found = _requested(plan)
    found["metadata"]["annotations"] = {
        SPEC: digest(plan),
        STAGE: plan.submission.stage,
        DEADLINE: plan.until.strftime("%Y-%m-%dT%H:%M:%SZ"),
        WORKSPACE: str(plan.submission.workspace),
    }
    return found


def digest(plan: RunPlan) -> str:
    """sha256 of what is requested, and of the settings that its pods find in a file: two submissions with the same one
    are the same, whenever they are made."""
    requested = [_requested(plan), plan.settings.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(requested, sort_keys=True).encode()).hexdigest()


def _requested(plan: RunPlan) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {
            "name": plan.name,
            "namespace": plan.how.namespace,
            "labels": {**plan.labels, **({QUEUE: plan.how.queue} if plan.how.queue else {})},
        },
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": plan.name},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["learner"]},
            "failurePolicy": jobset_policy(plan.how.max_restarts),
            "ttlSecondsAfterFinished": plan.how.ttl,
            "replicatedJobs": [_replicated(plan, role) for role in plan.roles],
        },
    }


def _replicated(plan: RunPlan, role: RolePlan) -> dict[str, Any]:
    single, engine = role.name == "rollout", plan.settings.rollout.engine
    container = server_probes(engine.start_timeout) if single and isinstance(engine, ServerEngine) else {}
    grace = SERVER_GRACE + DRAIN if single else plan.how.grace
    return {
        "name": role.name,
        "replicas": 1,
        "template": {
            "metadata": {"labels": dict(plan.labels)},
            "spec": {
                "completionMode": "Indexed",
                "completions": role.count,
                "parallelism": role.count,
                "backoffLimit": plan.how.replacements if single else 0,
                "activeDeadlineSeconds": plan.how.deadline,
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": one_by_one() if single else all_or_nothing(),
                "template": template(plan, role, grace, **container),
            },
        },
    }
