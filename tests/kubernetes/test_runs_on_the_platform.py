"""What the launcher makes, in the namespace that `k8s/` makes: pods that it admits, lets talk and has room for."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from components.config.quantities import amount, size
from components.launch.kubernetes import manifests
from components.launch.kubernetes.names import COMPONENT, HTTP_PORT, METRICS_PORT, RENDEZVOUS_PORT
from tests.kubernetes.building import K8S, by_kind, objects, overlay
from tests.kubernetes.policy import pod_specs, violations
from tests.kubernetes.profiles import PROFILES, plan
from tests.kubernetes.reaching import End, reaches

OVERLAYS = {"cpu": "cpu", "one-pod": "cpu", "s3": "cpu", "gpu": "gpu", "queued": "gpu"}
"""Profile -> the overlay of a cluster that it is for."""
GPU = "nvidia.com/gpu"
INDEX = "batch.kubernetes.io/job-completion-index"
"""Label that the Job controller writes on the pods of an Indexed job."""


@cache
def jobset(profile: str) -> dict[str, Any]:
    return manifests.jobset(plan(profile))


def pods(profile: str) -> dict[str, End]:
    """Role -> a pod of it, as network policies see it."""
    found = jobset(profile)
    return {
        job["name"]: End(job["template"]["spec"]["template"]["metadata"]["labels"], found["metadata"]["namespace"])
        for job in found["spec"]["replicatedJobs"]
    }


def platform(profile: str) -> list[dict[str, Any]]:
    return objects(overlay(OVERLAYS[profile]))


def test_every_profile_is_for_an_overlay() -> None:
    assert set(OVERLAYS) == set(PROFILES)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_pods_of_a_run_follow_the_policy(profile: str) -> None:
    assert violations(jobset(profile)) == []


@pytest.mark.parametrize("profile", PROFILES)
def test_a_run_is_in_the_namespace_and_under_an_account_without_rights(profile: str) -> None:
    found = jobset(profile)
    assert found["metadata"]["namespace"] in by_kind(platform(profile), "Namespace")
    for _, pod in pod_specs(found):
        assert pod["serviceAccountName"] == "evenkeel-run"
        assert pod["serviceAccountName"] in by_kind(platform(profile), "ServiceAccount")


@pytest.mark.parametrize("profile", PROFILES)
def test_claims_and_priorities_that_a_run_names_are_there(profile: str) -> None:
    there = [*platform(profile), *objects(K8S / "components" / "shared-volume")]
    for _, pod in pod_specs(jobset(profile)):
        assert pod.get("priorityClassName", "evenkeel-training") in by_kind(there, "PriorityClass")
        for volume in pod["volumes"]:
            claim = volume.get("persistentVolumeClaim", {"claimName": "evenkeel-shared"})
            assert claim["claimName"] in by_kind(there, "PersistentVolumeClaim")


@pytest.mark.parametrize("profile", PROFILES)
def test_network_policies_know_the_pods_by_their_labels_and_the_ports_they_open(profile: str) -> None:
    policies = [*by_kind(platform(profile), "NetworkPolicy").values()]
    there = pods(profile)
    prometheus = End({}, "monitoring", {"evenkeel/prometheus": "true"})
    assert all(end.labels[COMPONENT] == role for role, end in there.items())
    assert reaches(policies, prometheus, there["learner"], METRICS_PORT)
    assert reaches(policies, there["learner"], there["learner"], RENDEZVOUS_PORT)
    if "rollout" in there:
        reached = {role: reaches(policies, end, there["rollout"], HTTP_PORT) for role, end in there.items()}
        assert reached == {"learner": True, "rollout": False}
        assert not reaches(policies, prometheus, there["rollout"], HTTP_PORT)


def test_a_monitor_asks_for_the_port_by_the_name_that_it_has() -> None:
    monitor = objects(K8S / "components" / "pod-monitor")[0]["spec"]
    for _, pod in list(pod_specs(jobset("cpu")))[:1]:
        ports = {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]}
        assert [ports[endpoint["port"]] for endpoint in monitor["podMetricsEndpoints"]] == [METRICS_PORT]
    assert monitor["selector"]["matchLabels"].items() <= {**pods("cpu")["learner"].labels, INDEX: "0"}.items()


def asked(profile: str) -> Counter[str]:
    """What all pods of a run ask for together."""
    found: Counter[str] = Counter()
    for job in jobset(profile)["spec"]["replicatedJobs"]:
        job_spec = job["template"]["spec"]
        for container in job_spec["template"]["spec"]["containers"]:
            requests, count = container["resources"]["requests"], job_spec["parallelism"] * job.get("replicas", 1)
            found["cpu"] += int(amount(requests["cpu"]) * 1000) * count
            found["memory"] += size(requests["memory"]) * count
            found[GPU] += int(requests.get(GPU, 0)) * count
            found["pods"] += count
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_a_run_fits_into_the_quota_and_its_containers_into_the_limits(profile: str) -> None:
    quota = by_kind(platform(profile), "ResourceQuota")["evenkeel"]["spec"]["hard"]
    wanted = asked(profile)
    assert wanted["cpu"] <= amount(quota["requests.cpu"]) * 1000
    assert wanted["memory"] <= size(quota["requests.memory"])
    assert wanted[GPU] <= int(quota[f"requests.{GPU}"])
    assert wanted["pods"] <= int(quota["pods"])
    largest = by_kind(platform(profile), "LimitRange")["evenkeel-largest"]["spec"]["limits"][0]["max"]
    for _, pod in pod_specs(jobset(profile)):
        for container in pod["containers"]:
            limits = container["resources"]["limits"]
            assert amount(limits["cpu"]) <= amount(largest["cpu"])
            assert size(limits["memory"]) <= size(largest["memory"])


def test_a_run_for_gpus_does_not_fit_where_there_are_none() -> None:
    quota = by_kind(objects(overlay("cpu")), "ResourceQuota")["evenkeel"]["spec"]["hard"]
    assert asked("gpu")[GPU] > int(quota[f"requests.{GPU}"])
