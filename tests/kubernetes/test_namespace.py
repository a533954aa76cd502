"""The namespaces, their accounts, and how much may run in them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.building import CLUSTERS, K8S, by_kind, objects, overlay

NAMESPACES = {
    "evenkeel": by_kind(objects(overlay("cpu")), "Namespace")["evenkeel"],
    "prefect": by_kind(objects(K8S / "prefect" / "namespace"), "Namespace")["prefect"],
}


@pytest.mark.parametrize("name", list(NAMESPACES))
@pytest.mark.parametrize("mode", ["enforce", "audit", "warn"])
def test_pods_without_restrictions_are_refused_in_a_pinned_version_of_what_that_means(name: str, mode: str) -> None:
    labels = NAMESPACES[name]["metadata"]["labels"]
    assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"
    assert labels[f"pod-security.kubernetes.io/{mode}-version"] == "v1.34"


def test_only_the_worker_s_account_hands_out_its_token_by_itself() -> None:
    accounts = by_kind(objects(overlay("cpu")), "ServiceAccount")
    assert {name: account["automountServiceAccountToken"] for name, account in accounts.items()} == {
        "default": False,
        "evenkeel-launcher": False,
        "evenkeel-prefect-worker": True,
        "evenkeel-run": False,
    }


def quota(cluster: str) -> dict[str, Any]:
    found: dict[str, Any] = by_kind(objects(overlay(cluster)), "ResourceQuota")["evenkeel"]["spec"]["hard"]
    return found


def test_a_cluster_without_gpus_refuses_them_at_once() -> None:
    assert quota("cpu")["requests.nvidia.com/gpu"] == "0"
    assert int(quota("gpu")["requests.nvidia.com/gpu"]) > 0


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_everything_that_could_gather_is_bounded(cluster: str) -> None:
    bounded = {"requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "requests.storage"}
    assert bounded | {"pods", "count/jobs.batch"} <= set(quota(cluster))
    assert quota(cluster)["services.loadbalancers"] == quota(cluster)["services.nodeports"] == "0"


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_container_that_says_nothing_gets_limits_and_none_gets_more_than_a_node(cluster: str) -> None:
    ranges = by_kind(objects(overlay(cluster)), "LimitRange")
    usual, largest = (ranges[name]["spec"]["limits"][0] for name in ("evenkeel", "evenkeel-largest"))
    assert usual["default"].keys() == usual["defaultRequest"].keys() == {"cpu", "memory"}
    assert largest["max"].keys() >= {"cpu", "memory"}
    # The API server makes a default of every maximum that has none: of GPUs, one for each container that wants none.
    assert largest["default"] == usual["default"] and largest["defaultRequest"] == usual["defaultRequest"]
    assert largest["max"].keys() == largest["default"].keys()


def test_kueue_counts_all_that_pods_request() -> None:
    queue = by_kind(objects(K8S / "components" / "kueue"), "ClusterQueue")["evenkeel"]["spec"]
    (group,) = queue["resourceGroups"]
    requested = {"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"}
    assert set(group["coveredResources"]) == requested == {one["name"] for one in group["flavors"][0]["resources"]}


def test_a_nightly_run_makes_room_and_takes_none() -> None:
    classes = by_kind(objects(overlay("gpu")), "PriorityClass")
    training, nightly = classes["evenkeel-training"], classes["evenkeel-nightly"]
    assert training["value"] > nightly["value"]
    assert training["preemptionPolicy"] == "PreemptLowerPriority" and nightly["preemptionPolicy"] == "Never"
    assert not any(one["globalDefault"] for one in classes.values())


def test_the_shared_volume_is_written_by_many_nodes_at_once() -> None:
    claim = by_kind(objects(K8S / "components" / "shared-volume"), "PersistentVolumeClaim")["evenkeel-shared"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
