"""Every rule of the policy can be broken, and then it says so."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.kubernetes.policy import CONTAINER_RULES, POD_RULES, Manifest, pod_specs, violations

IMAGE = f"ghcr.io/somebody/image@sha256:{'0' * 64}"
AMOUNTS = {"cpu": "1", "memory": "1Gi"}
SAFE: Manifest = {
    "name": "one",
    "image": IMAGE,
    "resources": {"requests": AMOUNTS, "limits": AMOUNTS},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    },
}
POD: Manifest = {
    "serviceAccountName": "evenkeel-run",
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
    "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [SAFE],
    "volumes": [{"name": "tmp", "emptyDir": {}}],
}


def pod(**changes: Any) -> Manifest:
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {**deepcopy(POD), **changes}}


def with_container(place: str = "containers", **changes: Any) -> Manifest:
    found = pod()
    found["spec"][place] = [{**deepcopy(SAFE), **changes}]
    return found


def secured(**changes: Any) -> Manifest:
    return with_container(securityContext={**SAFE["securityContext"], **changes})


def test_a_safe_pod_breaks_no_rule() -> None:
    assert violations(pod()) == []


BAD = {
    "host": [pod(hostNetwork=True), pod(hostPID=True), pod(hostIPC=True)],
    "volumes": [pod(volumes=[{"name": "node", "hostPath": {"path": "/"}}]), pod(volumes=[{"name": "n", "nfs": {}}])],
    "account": [pod(serviceAccountName="default")],
    "service links": [pod(enableServiceLinks=True)],
    "token": [pod(automountServiceAccountToken=True)],
    "non-root": [secured(runAsNonRoot=False), secured(runAsUser=0), pod(securityContext={})],
    "escalation": [secured(allowPrivilegeEscalation=True), secured(privileged=True)],
    "capabilities": [secured(capabilities={}), secured(capabilities={"drop": ["ALL"], "add": ["NET_RAW"]})],
    "read-only": [secured(readOnlyRootFilesystem=False)],
    "seccomp": [secured(seccompProfile={"type": "Unconfined"}), pod(securityContext={"runAsNonRoot": True})],
    "resources": [
        with_container(resources={"requests": AMOUNTS}),
        with_container(resources={"limits": AMOUNTS}),
        with_container(resources={"requests": AMOUNTS, "limits": {"cpu": "1"}}),
        with_container(resources={}),
    ],
    "image": [
        with_container(image="python:3.11"),
        with_container(image="python"),
        with_container(image=f"python:latest@sha256:{'0' * 64}"),
        with_container(image="python@sha256:abc"),
        with_container(image=""),
    ],
    "ports": [with_container(ports=[{"containerPort": 80, "hostPort": 80}])],
}


@pytest.mark.parametrize(("rule", "manifest"), [(rule, bad) for rule, bads in BAD.items() for bad in bads])
def test_a_violation_names_the_rule(rule: str, manifest: Manifest) -> None:
    said = violations(manifest)
    assert said and any(f"{rule}: " in line for line in said), said


def test_every_rule_has_a_manifest_that_breaks_it() -> None:
    assert {*POD_RULES, *CONTAINER_RULES, "token"} == set(BAD)


@pytest.mark.parametrize("field", ["automountServiceAccountToken", "enableServiceLinks", "serviceAccountName"])
def test_what_a_pod_leaves_unsaid_is_not_taken_for_safe(field: str) -> None:
    manifest = pod()
    del manifest["spec"][field]
    assert len(violations(manifest)) == 1


@pytest.mark.parametrize("place", ["initContainers", "containers", "ephemeralContainers"])
def test_containers_of_every_sort_are_looked_at(place: str) -> None:
    assert any("escalation" in line for line in violations(with_container(place, securityContext={})))


def test_a_token_is_for_the_accounts_that_are_named() -> None:
    manifest = pod(automountServiceAccountToken=True)
    assert violations(manifest, may_have_token={"evenkeel-run"}) == []
    assert violations(manifest, may_have_token={"another"}) != []


def test_a_container_cannot_undo_what_its_pod_says() -> None:
    said = violations(secured(runAsNonRoot=False, runAsUser=0, seccompProfile={"type": "Unconfined"}))
    assert [line.split(": ")[2] for line in said] == ["non-root", "non-root", "seccomp"]


def test_pods_are_found_in_objects_of_every_kind() -> None:
    template = {"spec": POD}
    job = {"template": template}
    kinds: dict[str, tuple[Manifest, list[str]]] = {
        "Job": (job, ["template"]),
        "Deployment": (job, ["template"]),
        "CronJob": ({"jobTemplate": {"spec": job}}, ["jobTemplate"]),
        "JobSet": ({"replicatedJobs": [{"name": n, "template": {"spec": job}} for n in "ab"]}, ["a", "b"]),
        "ConfigMap": ({}, []),
    }
    for kind, (spec, places) in kinds.items():
        assert [where for where, _ in pod_specs({"kind": kind, "spec": spec})] == places
