"""Runs on a real cluster whose pods do something simple, or the real thing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.config import load
from components.launch.kubernetes.names import GROUP, PLURAL, VERSION, Role
from components.launch.kubernetes.plan import RunPlan, Submission, plan_run
from tests.cluster.conftest import Place
from tests.kubernetes.profiles import CPU, ROOT

NOBODYS = f"registry.example.com/none@sha256:{'0' * 64}"
SMALL_PODS = [
    *(f"launch.kubernetes.{role}.{what}" for role in ("learner", "rollout") for what in ("cpu=100m",)),
    *(f"launch.kubernetes.{role}.memory=1Gi" for role in ("learner", "rollout")),
    "launch.kubernetes.grace=30",
    "launch.kubernetes.rollout.shm=64Mi",
]
ALONE = ["rollout.engine={kind: torch}", "learner.kind=torch", "learner.ranks.processes=2"]
Commands = Mapping[Role, Sequence[str]]


def on(place: Place, image: str = NOBODYS, claim: str = "shared", path: str = "/shared") -> list[str]:
    """Overrides that bring a run to a place."""
    how = "launch.kubernetes"
    images = {"learner": image, "rollout": image}
    nodes = [f"{how}.{role}.node_selector={json.dumps(place.nodes)}" for role in ("learner", "rollout")]
    state = {"kind": "volume", "claim": claim, "path": path}
    return [
        f"{how}.namespace={place.namespace}",
        f"{how}.images={json.dumps(images)}",
        f"{how}.shared={json.dumps(state)}",
        f"{how}.user=10001",
        *nodes,
    ]


def planned(name: str, overrides: Sequence[str], workspace: Path | None = None) -> RunPlan:
    """The plan of configs/kubernetes.yaml with overrides; ``name`` is the run's id."""
    submission = Submission(
        stage="train",
        workspace=workspace or Path("/shared") / name,
        run=name,
        owner="tests",
        code="c" * 64,
        constraints="d" * 64,
        now=datetime.now(UTC),
    )
    return plan_run(load(ROOT / CPU, overrides), submission)


def with_commands(plan: RunPlan, commands: Commands) -> RunPlan:
    """The same pods at other work."""
    return replace(
        plan,
        roles=tuple(replace(role, command=tuple(commands[role.name])) for role in plan.roles if role.name in commands),
    )


def without_volume(manifest: dict[str, Any]) -> dict[str, Any]:
    """The same with an empty folder in the place of the shared volume: for pods that only end."""
    for replicated in manifest["spec"]["replicatedJobs"]:
        spec = replicated["template"]["spec"]["template"]["spec"]
        for volume in spec["volumes"]:
            if volume.pop("persistentVolumeClaim", None):
                volume["emptyDir"] = {}
        for container in spec["containers"]:
            container["workingDir"] = "/tmp"
    return manifest


def jobset_of(place: Place, name: str) -> dict[str, Any]:
    found: dict[str, Any] = place.custom.get_namespaced_custom_object(GROUP, VERSION, place.namespace, PLURAL, name)
    return found


def pods_of(place: Place, name: str, role: str = "learner") -> list[Any]:
    selector = f"jobset.sigs.k8s.io/jobset-name={name},app.kubernetes.io/component={role}"
    found: list[Any] = place.core.list_namespaced_pod(place.namespace, label_selector=selector).items
    return sorted(found, key=lambda pod: str(pod.metadata.name))


def await_(what: str, ready: Callable[[], bool], seconds: float = 120) -> None:
    """Look until it is so."""
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, f"{what}: not within {seconds:g} s"
        time.sleep(0.5)
