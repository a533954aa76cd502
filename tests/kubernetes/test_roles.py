"""Every account may do exactly what its requests need: the roles in `k8s/` against the table in the code."""

from __future__ import annotations

from itertools import product

import pytest

from components.launch.kubernetes.permissions import EVERYONE, ROLES, Permission
from tests.kubernetes.building import CLUSTERS, K8S, Manifest, by_kind, objects, overlay

PLATFORM = objects(overlay("gpu"))
PREFECT_WORKER: frozenset[Permission] = frozenset(
    {
        ("batch", "jobs", "create"),
        ("batch", "jobs", "delete"),
        ("batch", "jobs", "list"),
        ("batch", "jobs", "watch"),
        ("", "pods", "list"),
        ("", "pods", "watch"),
        ("", "pods/log", "get"),
    }
)
"""What prefect-kubernetes 0.7.12 to 0.8.0 requests, see k8s/base/prefect-worker.yaml."""


def granted(role: Manifest) -> frozenset[Permission]:
    return frozenset(
        triple for rule in role["rules"] for triple in product(rule["apiGroups"], rule["resources"], rule["verbs"])
    )


def bound(manifests: list[Manifest]) -> dict[str, set[str]]:
    """Subject -> the roles it has."""
    found: dict[str, set[str]] = {}
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in by_kind(manifests, kind).values():
            for subject in binding["subjects"]:
                role = binding["roleRef"]
                found.setdefault(subject["name"], set()).add(f"{role['kind']}/{role['name']}")
    return found


@pytest.mark.parametrize(
    ("needed", "kind", "name"),
    [("launcher", "Role", "evenkeel-launcher"), ("doctor", "Role", "evenkeel-doctor"),
     ("doctor-cluster", "ClusterRole", "evenkeel-doctor")],
)  # fmt: skip
def test_a_role_grants_what_the_code_requests_and_nothing_else(needed: str, kind: str, name: str) -> None:
    assert granted(by_kind(PLATFORM, kind)[name]) == ROLES[needed]


def test_every_role_of_the_code_has_one_in_the_platform() -> None:
    assert set(ROLES) == {"launcher", "doctor", "doctor-cluster"}
    assert set(by_kind(PLATFORM, "Role")) == {"evenkeel-launcher", "evenkeel-doctor", "evenkeel-prefect-worker"}
    assert set(by_kind(PLATFORM, "ClusterRole")) == {"evenkeel-doctor"}


def test_no_role_grants_what_everyone_may_do() -> None:
    assert not EVERYONE & frozenset().union(*ROLES.values())


def test_prefect_s_worker_gets_what_its_source_calls() -> None:
    assert granted(by_kind(PLATFORM, "Role")["evenkeel-prefect-worker"]) == PREFECT_WORKER


def test_no_role_has_a_wildcard_or_reads_secrets_or_makes_others_mighty() -> None:
    roles = [*by_kind(PLATFORM, "Role").values(), *by_kind(PLATFORM, "ClusterRole").values()]
    everything = frozenset().union(*map(granted, roles))
    assert not [one for one in everything if "*" in one]
    assert "secrets" not in {resource for _, resource, _ in everything}
    assert not {verb for _, _, verb in everything} & {
        "bind",
        "escalate",
        "impersonate",
        "deletecollection",
        "patch",
        "update",
    }
    mighty = {"pods/exec", "pods/attach", "pods/portforward", "serviceaccounts/token", "roles", "rolebindings"}
    assert not {resource for _, resource, _ in everything} & mighty


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_accounts_have_their_own_role_in_the_namespace_and_runs_have_none(cluster: str) -> None:
    assert bound(objects(overlay(cluster))) == {
        "evenkeel-launcher": {"Role/evenkeel-launcher"},
        "evenkeel-prefect-worker": {"Role/evenkeel-prefect-worker"},
    }


def test_people_get_what_starting_runs_and_the_doctor_need_when_that_is_asked_for() -> None:
    assert bound(objects(K8S / "components" / "operators")) == {
        "evenkeel-operators": {"Role/evenkeel-launcher", "Role/evenkeel-doctor", "ClusterRole/evenkeel-doctor"}
    }


def test_a_binding_names_accounts_of_the_namespace_it_is_in() -> None:
    for binding in by_kind(PLATFORM, "RoleBinding").values():
        for subject in binding["subjects"]:
            assert (subject["kind"], subject["namespace"]) == ("ServiceAccount", binding["metadata"]["namespace"])
            assert subject["name"] in by_kind(PLATFORM, "ServiceAccount")
        assert binding["roleRef"]["name"] in by_kind(PLATFORM, binding["roleRef"]["kind"])
