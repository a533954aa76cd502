"""The table of permissions is what the requests need: no more, no less."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.permissions import EVERYONE, ROLES
from tests.kubernetes.fake_api import FakeApi, Fault
from tests.kubernetes.objects import jobset

OTHERS = {"connect", "server", "found", "listed"}
"""These make no request of their own, or those that the doctor makes: `test_doctor_kubernetes`."""
CALLS: dict[str, Callable[[FakeApi, Cluster], object]] = {
    "version": lambda api, cluster: cluster.version(),
    "versions": lambda api, cluster: cluster.versions("batch"),
    "may": lambda api, cluster: cluster.may(("", "pods", "list")),
    "dry_run": lambda api, cluster: cluster.dry_run(jobset()),
    "create": lambda api, cluster: [
        api.faults.add(Fault("lost", method="POST", path="/jobsets")),
        cluster.create(jobset()),
    ],
    "jobset": lambda api, cluster: cluster.jobset("demo-1"),
    "jobsets": lambda api, cluster: cluster.jobsets("a=b"),
    "delete_jobset": lambda api, cluster: cluster.delete_jobset(
        "demo-1", api.put("jobsets", jobset())["metadata"]["uid"]
    ),
    "jobs": lambda api, cluster: cluster.jobs("a=b"),
    "pods": lambda api, cluster: cluster.pods("a=b"),
    "events": lambda api, cluster: cluster.events(),
    "log": lambda api, cluster: list(cluster.log("demo-1-learner-0-0", "learner", follow=True)),
    "watch": lambda api, cluster: list(cluster.watch("demo-1", 1)),
}


def test_the_role_of_a_launcher_grants_what_the_requests_need_and_nothing_else(api: FakeApi, cluster: Cluster) -> None:
    public = {
        name
        for name, member in inspect.getmembers(Cluster)
        if not name.startswith("_") and (callable(member) or isinstance(member, property))
    }
    assert set(CALLS) == public - OTHERS
    for call in CALLS.values():
        call(api, cluster)
    assert {one.permission for one in api.seen} - EVERYONE == ROLES["launcher"]


def test_a_request_that_is_not_granted_is_refused_by_the_server(api: FakeApi, cluster: Cluster) -> None:
    """Or the comparison above would prove nothing."""
    api.denied = {("", "pods", "list")}
    with pytest.raises(Exception, match="may not list pods"):
        cluster.pods("a=b")
