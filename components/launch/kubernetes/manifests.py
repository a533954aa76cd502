"""A `RunPlan` as the one object that Kubernetes makes a run of: a JobSet, the same for the same plan.

A job only knows its own pods, so it fails at once and states why; the JobSet reads that and decides for all: bad input
fails the run, a disruption starts it again for nothing, the rest a few times. `components.errors` has the codes.
"""

from __future__ import annotations

import hashlib
import json
from math import ceil
from typing import Any

import yaml

from components.config.servers import ServerEngine
from components.errors import EXIT_BAD_INPUT, EXIT_NO_CANDIDATE, EXIT_STOPPED
from components.launch.kubernetes.names import DEADLINE, GROUP, KIND, QUEUE, SPEC, STAGE, VERSION, WORKSPACE
from components.launch.kubernetes.plan import RolePlan, RunPlan
from components.launch.kubernetes.pod_template import template

DISRUPTION = {"type": "DisruptionTarget", "status": "True"}
"""Condition of a pod that is evicted, preempted, or was on a node that went away."""
STARTUP_PERIOD = 10
SERVER_GRACE = 60
"""Seconds that a server has to end, its drain included."""
DRAIN = 15
"""Seconds between the end of a pod being announced and its server hearing of it: requests in flight go on."""


def jobset(plan: RunPlan) -> dict[str, Any]:
    """The run's JobSet. It succeeds when the learner does, and servers that are running then are ended.

    Jobs do not wait for one another (`dependsOn` deadlocks where a scheduler places all pods or none): rank 0 waits for
    servers and other ranks by itself, and states which one it misses.
    """
    found: dict[str, Any] = {
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
            "failurePolicy": _policy(plan.how.max_restarts),
            "ttlSecondsAfterFinished": plan.how.ttl,
            "replicatedJobs": [_replicated(plan, role) for role in plan.roles],
        },
    }
    # Two submissions of the same, also in the settings that pods find in a file, have the same digest at any time.
    requested = json.dumps([found, plan.settings.model_dump(mode="json")], sort_keys=True)
    found["metadata"]["annotations"] = {
        SPEC: hashlib.sha256(requested.encode()).hexdigest(),
        STAGE: plan.submission.stage,
        DEADLINE: plan.until.strftime("%Y-%m-%dT%H:%M:%SZ"),
        WORKSPACE: str(plan.submission.workspace),
    }
    return found


def _replicated(plan: RunPlan, role: RolePlan) -> dict[str, Any]:
    single, engine = role.name == "rollout", plan.settings.rollout.engine
    container = _probes(engine.start_timeout) if single and isinstance(engine, ServerEngine) else {}
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
                "podFailurePolicy": _pod_failures(single=single),
                "template": template(plan, role, grace, **container),
            },
        },
    }


def _pod_failures(*, single: bool) -> dict[str, Any]:
    """What a job does when a pod fails. The first rule that fits counts, so a pod that is evicted is a disruption
    whatever code it ends with.

    Args:
        single: whether its pods are servers: one that is disrupted is replaced and not counted, and the run goes on
            with the others meanwhile; one that refuses its arguments, or finds that its files are not there, would do
            so again. Otherwise pods are nothing without one another, and any failure is the job's.
    """
    codes = [[EXIT_BAD_INPUT]] if single else [sorted((EXIT_BAD_INPUT, EXIT_NO_CANDIDATE)), [EXIT_STOPPED]]
    failures = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": values}} for values in codes]
    return {"rules": [{"action": "Ignore" if single else "FailJob", "onPodConditions": [DISRUPTION]}, *failures]}


def _policy(max_restarts: int) -> dict[str, Any]:
    """Rules of the JobSet, by what the Job controller writes on jobs that failed; what fits none is a restart that
    counts. The first rule that fits any of them decides: pods that are stopped because a time is over, or that
    stop because others were, end as disrupted ones do."""
    disrupted = rf"has condition DisruptionTarget matching|failed with exit code {EXIT_STOPPED} matching"
    return {
        "maxRestarts": max_restarts,
        "restartStrategy": "BlockingRecreate",  # no pod of an attempt before the last one of the attempt before is gone
        "rules": [
            {"name": "overdue", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
            {
                "name": "disrupted",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": ["PodFailurePolicy"],
                "onJobFailureMessagePatterns": [disrupted],
            },
            {"name": "hopeless", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
        ],
    }


def _probes(start_timeout: float) -> dict[str, Any]:
    """Of a vLLM server: ``start_timeout`` seconds to load its model; after that `/health`, which needs no model.

    That it answers is all that a probe can know. Whether it still computes, and with which weights, the run finds out
    by itself: one-token canaries, and a check of log-probabilities after every hand-over
    (`components.rollout.servers`).
    """
    return {
        "startupProbe": _probe("/v1/models", STARTUP_PERIOD, 5, max(1, ceil(start_timeout / STARTUP_PERIOD))),
        "readinessProbe": _probe("/health", 5, 5, 3),
        "livenessProbe": _probe("/health", 20, 10, 6),  # a hand-over of weights holds the server for a while
        "lifecycle": {"preStop": {"sleep": {"seconds": DRAIN}}},
    }


def _probe(path: str, period: int, timeout: int, failures: int) -> dict[str, Any]:
    """It fails after so many ``failures``, ``period`` seconds apart, to answer within ``timeout`` seconds."""
    get = {"path": path, "port": "http"}
    return {"httpGet": get, "periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": failures}


def as_yaml(manifest: dict[str, Any]) -> str:
    """One YAML document, for people and for `kubectl apply`. What occurs twice is repeated, as JSON does it."""
    return yaml.safe_dump(json.loads(json.dumps(manifest)), sort_keys=False, width=120)
