"""Every refusal is one clear message, with the command that fixes it."""

from __future__ import annotations

from typing import Any

import pytest

from components.errors import InputError
from components.launch.kubernetes.api import Cluster, Exists, Refused, Unreachable
from tests.kubernetes.fake_api import FakeApi, Fault, answers
from tests.kubernetes.objects import jobset

CASES: dict[str, tuple[dict[str, Any], type[InputError], str, str]] = {
    "quota": (answers.QUOTA, Refused, "exceeded quota: compute", "kubectl describe resourcequota -n evenkeel"),
    "webhook": (answers.WEBHOOK_DENIED, Refused, "image is not signed", "the message above is from their policies"),
    "jobset's own check": (
        answers.INVALID_BY_JOBSET,
        Refused,
        r"does not accept JobSet demo-1: \[spec\.network\.subdomain",
        "change the setting",
    ),
    "unknown field": (answers.UNKNOWN_FIELD, Refused, 'unknown field "spec.foo"', "evenkeel launch --dry-run"),
    "invalid": (answers.INVALID, Refused, r"\n  - metadata\.name: Invalid value", "evenkeel launch --dry-run"),
    "namespace ends": (answers.ENDING, Refused, "namespace is being deleted", "create it again"),
    "being deleted": (answers.BEING_DELETED, Exists, "still being deleted", "--watch"),
    "there": (answers.exists("jobsets", "demo-1"), Exists, "is there already", "get jobsets demo-1"),
    "teapot": (
        answers.status(418, "Teapot", "no coffee"),
        Refused,
        r"refuses to create .*no coffee \(status 418\)",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_says_what_is_wrong_and_how_to_fix_it(api: FakeApi, cluster: Cluster, case: str) -> None:
    body, kind, what, how = CASES[case]
    api.faults.add(Fault("status", method="POST", body=body))
    with pytest.raises(kind, match=what) as caught:
        cluster.create(jobset())
    assert type(caught.value) is kind
    assert how in (caught.value.how or "")
    assert f"JobSet demo-1 in namespace evenkeel of {api.url}" == caught.value.where
    assert isinstance(caught.value, Refused) and caught.value.status == body["code"]


def test_a_namespace_that_is_not_there_is_named(api: FakeApi, cluster: Cluster) -> None:
    cluster.namespace = "elsewhere"
    with pytest.raises(Refused, match="there is no namespace 'elsewhere'") as caught:
        cluster.create(jobset())
    assert "launch.kubernetes.namespace" in (caught.value.how or "")


def test_a_missing_right_names_who_lacks_what_where_and_who_grants_it(api: FakeApi, cluster: Cluster) -> None:
    api.denied = {("", "pods", "list")}
    with pytest.raises(Refused) as caught:
        cluster.pods("a=b")
    assert caught.value.what == f"{answers.USER} may not list pods in namespace evenkeel"
    assert "kubectl apply --server-side -k k8s/overlays/cpu" in (caught.value.how or "")
    assert f"kubectl auth can-i list pods -n evenkeel --as {answers.USER}" in (caught.value.how or "")


def test_the_command_that_checks_a_right_knows_groups_and_subresources(api: FakeApi, cluster: Cluster) -> None:
    api.denied = {("", "pods/log", "get"), ("jobset.x-k8s.io", "jobsets", "list")}
    with pytest.raises(Refused, match="may not get pods/log") as caught:
        list(cluster.log("demo-1-learner-0-0", "learner"))
    assert "kubectl auth can-i get pods --subresource=log -n evenkeel" in (caught.value.how or "")
    with pytest.raises(Refused, match="may not list jobsets") as caught:
        cluster.jobsets("a=b")
    assert "kubectl auth can-i list jobsets.jobset.x-k8s.io -n evenkeel" in (caught.value.how or "")


def test_the_error_for_an_anonymous_user_says_that_there_are_no_credentials(api: FakeApi, cluster: Cluster) -> None:
    body = answers.status(403, "Forbidden", 'pods is forbidden: User "system:anonymous" cannot list resource "pods"')
    api.faults.add(Fault("status", body=body))
    with pytest.raises(Refused, match="context 'test' has no credentials") as caught:
        cluster.pods("a=b")
    assert "log in again" in (caught.value.how or "")


def test_the_error_for_a_cluster_without_jobset_shows_the_install_command(api: FakeApi, cluster: Cluster) -> None:
    del api.served["jobset.x-k8s.io"]
    for ask in (lambda: cluster.dry_run(jobset()), lambda: cluster.create(jobset()), lambda: cluster.jobsets("a=b")):
        with pytest.raises(Refused, match="JobSet is not installed") as caught:
            ask()
        assert "kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset" in (caught.value.how or "")


def test_the_error_for_another_version_of_jobset_names_it(api: FakeApi, cluster: Cluster) -> None:
    api.served["jobset.x-k8s.io"] = ["v1beta1", "v1"]
    with pytest.raises(Refused, match="serves JobSet as v1beta1, v1, and Evenkeel speaks v1alpha2"):
        cluster.create(jobset())


def test_a_server_that_is_no_api_server_is_reported(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("text", times=100))
    with pytest.raises(Unreachable, match="no JSON; is it a Kubernetes API server"):
        cluster.pods("a=b")
