"""The table of permissions is what the requests need: no more, no less."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from components.launch.kubernetes.api import Cluster, Examination
from components.launch.kubernetes.permissions import EVERYONE, NEEDS, ROLES, Permission
from tests.kubernetes.fake_api import FakeApi, Fault
from tests.kubernetes.objects import jobset

WITHOUT_REQUESTS = {"Cluster.connect", "Examination.server"}
"""`connect` asks for the version, which is no resource."""
PATHS: dict[str, Callable[[FakeApi, Cluster], object]] = {
    "Cluster.version": lambda api, cluster: cluster.version(),
    "Cluster.dry_run": lambda api, cluster: cluster.dry_run(jobset()),
    "Cluster.create": lambda api, cluster: [
        api.faults.add(Fault("lost", method="POST", path="/jobsets")),
        cluster.create(jobset()),
    ],
    "Cluster.jobset": lambda api, cluster: cluster.jobset("demo-1"),
    "Cluster.jobsets": lambda api, cluster: cluster.jobsets("a=b"),
    "Cluster.delete_jobset": lambda api, cluster: [api.put("jobsets", jobset()), cluster.delete_jobset("demo-1")],
    "Cluster.jobs": lambda api, cluster: cluster.jobs("a=b"),
    "Cluster.pods": lambda api, cluster: cluster.pods("a=b"),
    "Cluster.events": lambda api, cluster: cluster.events(),
    "Cluster.log": lambda api, cluster: list(cluster.log("demo-1-learner-0-0", "learner", follow=True)),
    "Cluster.watch": lambda api, cluster: list(cluster.watch("demo-1", 1)),
    "Examination.versions": lambda api, cluster: Examination(cluster).versions("batch"),
    "Examination.may": lambda api, cluster: Examination(cluster).may(("", "pods", "list")),
    "Examination.described": lambda api, cluster: Examination(cluster).described(),
    "Examination.quotas": lambda api, cluster: Examination(cluster).quotas(),
    "Examination.claim": lambda api, cluster: Examination(cluster).claim("shared"),
    "Examination.account": lambda api, cluster: Examination(cluster).account("evenkeel-run"),
    "Examination.queue": lambda api, cluster: Examination(cluster).queue("gpus"),
    "Examination.nodes": lambda api, cluster: Examination(cluster).nodes(),
    "Examination.storage_class": lambda api, cluster: Examination(cluster).storage_class("fast"),
    "Examination.priority_class": lambda api, cluster: Examination(cluster).priority_class("high"),
}


def methods() -> set[str]:
    """Everything public of the classes that talk to a server."""
    return {
        f"{kind.__name__}.{name}"
        for kind in (Cluster, Examination)
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_") and (callable(member) or isinstance(member, property))
    }


def test_every_method_says_what_it_needs() -> None:
    assert set(NEEDS) == set(PATHS) == methods() - WITHOUT_REQUESTS


@pytest.mark.parametrize("method", PATHS)
def test_a_method_asks_for_exactly_what_it_says(api: FakeApi, cluster: Cluster, method: str) -> None:
    api.served["kueue.x-k8s.io"] = ["v1beta2"]
    PATHS[method](api, cluster)
    assert {one.permission for one in api.seen} == NEEDS[method]


def test_the_roles_grant_what_the_methods_need_and_nothing_else() -> None:
    def needed(kind: str) -> set[Permission]:
        return {one for name, found in NEEDS.items() if name.startswith(kind) for one in found}

    assert ROLES["launcher"] == needed("Cluster.")
    assert ROLES["doctor"] | ROLES["doctor-cluster"] == needed("Examination.") - EVERYONE


def test_no_role_may_touch_secrets_run_commands_in_pods_or_change_what_runs() -> None:
    granted = {one for permissions in ROLES.values() for one in permissions}
    never = {"secrets", "pods/exec", "pods/portforward", "roles", "rolebindings"}
    assert not {resource for _, resource, _ in granted} & never
    assert {verb for *_, verb in granted} <= {"create", "get", "list", "watch", "delete"}
    assert "*" not in {part for one in granted for part in one}


def test_a_request_that_is_not_granted_is_refused_by_the_server(api: FakeApi, cluster: Cluster) -> None:
    """Or the comparison above would prove nothing."""
    api.denied = {("", "pods", "list")}
    with pytest.raises(Exception, match="may not list pods"):
        cluster.pods("a=b")
