"""`evenkeel doctor --kubernetes`: every check can say ok, and can say what is wrong and what fixes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from components.checks import Check
from components.config import Settings, load
from components.config.quantities import amount
from components.launch.kubernetes import doctor as cluster_doctor
from components.launch.kubernetes.api import cluster as cluster_module
from components.launch.kubernetes.doctor import examine
from components.launch.kubernetes.permissions import EVERYONE, ROLES
from flows.cli import app
from flows.host import doctor
from tests.kubernetes.conftest import QUICK
from tests.kubernetes.fake_api import FakeApi
from tests.kubernetes.fake_api.faults import Fault
from tests.s3_server import BUCKET

CONFIG = Path("configs/kubernetes.yaml")
NODE = {
    "metadata": {"name": "node-1", "labels": {"pool": "big"}},
    "spec": {},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "8"},
    },
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "Patience", lambda: QUICK)


def node(name: str = "node-1", **changes: Any) -> dict[str, Any]:
    spec = {"taints": changes.pop("taints", []), "unschedulable": changes.pop("cordoned", False)}
    labels, ready = changes.pop("labels", {"pool": "big"}), changes.pop("ready", "True")
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    status["allocatable"] = {**NODE["status"]["allocatable"], **changes}  # type: ignore[dict-item, index]
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


@pytest.fixture
def healthy(api: FakeApi, config: Path, tmp_path: Path) -> FakeApi:
    """A cluster as k8s/ makes it."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.put("namespaces", {"metadata": {"name": "evenkeel", "labels": restricted}}, "")
    api.put("serviceaccounts", {"metadata": {"name": "evenkeel-run"}})
    api.put("nodes", node(), "")
    modes = {"accessModes": ["ReadWriteMany"]}
    api.put(
        "persistentvolumeclaims", {"metadata": {"name": "evenkeel-shared"}, "spec": modes, "status": {"phase": "Bound"}}
    )
    return api


def settings(tmp_path: Path, *overrides: str) -> Settings:
    """A run whose shared folder is here."""
    return load(CONFIG, [f"launch.kubernetes.shared.path={tmp_path}/shared", *overrides])


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, list[Check]]]:
    """All checks of a run with these settings, by name."""
    (tmp_path / "shared").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 1000)

    def look(*overrides: str) -> dict[str, list[Check]]:
        found: dict[str, list[Check]] = {}
        for check in examine(settings(tmp_path, *overrides)):
            found.setdefault(check.name, []).append(check)
        for check in (one for every in found.values() for one in every):
            assert bool(check.fix) is (check.state != "ok"), check
        return found

    return look


def test_a_cluster_as_the_platform_makes_it_passes_every_check(healthy: FakeApi, checks: Any) -> None:
    healthy.served["kueue.x-k8s.io"] = ["v1beta2"]
    healthy.put("localqueues", {"metadata": {"name": "gpus"}})
    healthy.put("priorityclasses", {"metadata": {"name": "high"}}, "")
    found = checks("launch.kubernetes.queue=gpus", "launch.kubernetes.learner.priority_class=high")
    assert [one for every in found.values() for one in every if one.state != "ok"] == []
    assert set(found) == {
        "client",
        "cluster",
        "jobset",
        "namespace",
        "rights",
        "account",
        "queue",
        "priority",
        "quota",
        "nodes",
        "claim",
        "volume",
    }


def test_the_roles_of_the_doctor_grant_what_it_requests_and_nothing_else(healthy: FakeApi, checks: Any) -> None:
    healthy.served["kueue.x-k8s.io"] = ["v1beta2"]
    healthy.put("persistentvolumeclaims", claim(["ReadWriteMany"], "Pending", "nfs"))
    checks("launch.kubernetes.queue=gpus", "launch.kubernetes.learner.priority_class=high")
    assert {one.permission for one in healthy.seen} - EVERYONE == ROLES["doctor"] | ROLES["doctor-cluster"]


def test_nothing_is_changed_by_looking(healthy: FakeApi, checks: Any) -> None:
    before = dict(healthy.store.objects)
    checks()
    assert healthy.store.objects == before
    assert {one.plural for one in healthy.seen if one.verb not in ("get", "list")} == {"selfsubjectaccessreviews"}


# No cluster


def test_without_a_kubeconfig_it_stops_there_with_what_to_do(checks: Any) -> None:
    found = checks()
    assert list(found) == ["client", "cluster"]
    assert found["cluster"][0].state == "fail"
    assert "export KUBECONFIG=FILE" in found["cluster"][0].fix


def expired(api: FakeApi) -> None:
    api.tokens = {"new"}


def going_away(api: FakeApi) -> None:
    api.put("namespaces", {"metadata": {"name": "evenkeel"}, "status": {"phase": "Terminating"}}, "")


FAILURES: dict[str, tuple[Callable[[FakeApi], object], list[str], str, str]] = {
    "cluster": (expired, [], "does not accept the credentials", "log in again"),
    "cluster, away": (lambda api: api.stop(), [], "connection refused", "kubectl cluster-info"),
    "jobset": (
        lambda api: api.served.pop("jobset.x-k8s.io"),
        [],
        "not installed: nothing serves jobset.x-k8s.io",
        "kubectl apply --server-side -f",
    ),
    "jobset, version": (
        lambda api: api.served.update({"jobset.x-k8s.io": ["v1"]}),
        [],
        "served as v1, needed is v1alpha2",
        "kubectl apply --server-side -f",
    ),
    "namespace": (
        lambda api: api.store.remove(("namespaces", "", "evenkeel")),
        [],
        "there is no namespace evenkeel",
        "kubectl apply --server-side -k k8s/overlays/cpu",
    ),
    "namespace, going away": (going_away, [], "evenkeel is being deleted", "wait, then create it again"),
    "queue": (lambda _: None, ["launch.kubernetes.queue=gpus"], "Kueue is not installed", "install Kueue"),
    "claim": (
        lambda api: api.store.remove(("persistentvolumeclaims", "evenkeel", "evenkeel-shared")),
        [],
        "there is no claim evenkeel-shared in evenkeel",
        "k8s/components/shared-volume",
    ),
}
"""Name of the check, and of the case -> how to bring it about, settings, what is found, and what is advised."""


@pytest.mark.parametrize("case", FAILURES)
def test_what_keeps_every_run_from_the_cluster_fails_with_what_to_do(healthy: FakeApi, checks: Any, case: str) -> None:
    bring_about, overrides, finding, fix = FAILURES[case]
    bring_about(healthy)
    found = checks(*overrides)
    (check,) = found[case.partition(",")[0]]
    assert (check.state, finding in check.finding, fix in check.fix) == ("fail", True, True), check
    assert "cluster" not in case or list(found) == ["client", "cluster"], "it stops there"


@pytest.mark.parametrize(
    ("version", "state"),
    [("v1.33.9", "warn"), ("v1.34.0", "ok"), ("v1.37.1-gke.5", "ok"), ("v1.38.0", "warn"), ("", "warn")],
)
def test_the_server_has_a_version_that_this_was_made_for(
    healthy: FakeApi, checks: Any, version: str, state: str
) -> None:
    healthy.git_version = version
    (check,) = checks()["cluster"]
    assert check.state == state


@pytest.mark.parametrize(("version", "state"), [("37.4.0", "ok"), ("36.0.0", "warn")])
def test_the_client_is_the_tested_one(monkeypatch: pytest.MonkeyPatch, version: str, state: str) -> None:
    monkeypatch.setattr(cluster_doctor.importlib.metadata, "version", lambda _: version)
    assert cluster_doctor.client().state == state


# JobSet, namespace, rights


@pytest.mark.parametrize("level", ["baseline", "privileged", None])
def test_a_namespace_that_lets_any_pod_in_is_worth_a_warning(healthy: FakeApi, checks: Any, level: str | None) -> None:
    labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
    healthy.put("namespaces", {"metadata": {"name": "evenkeel", "labels": labels}}, "")
    (check,) = checks()["namespace"]
    assert check.state == "warn"
    assert "kubectl label namespace evenkeel pod-security.kubernetes.io/enforce=restricted" in check.fix


def test_every_right_that_is_missing_has_a_line_with_the_command_that_checks_it(healthy: FakeApi, checks: Any) -> None:
    healthy.denied = {("", "pods/log", "get"), ("jobset.x-k8s.io", "jobsets", "create")}
    log, create = checks()["rights"]
    assert (log.finding, create.finding) == (
        "may not get pods/log in evenkeel",
        "may not create jobsets in evenkeel",
    )
    assert "kubectl auth can-i get pods --subresource=log -n evenkeel" in log.fix
    assert "kubectl auth can-i create jobsets.jobset.x-k8s.io -n evenkeel" in create.fix


def test_every_right_of_the_launcher_is_asked_for(healthy: FakeApi, checks: Any) -> None:
    checks()
    asked = [one.body["spec"]["resourceAttributes"] for one in healthy.seen if one.plural == "selfsubjectaccessreviews"]
    found = {(a["group"], "/".join(filter(None, (a["resource"], a["subresource"]))), a["verb"]) for a in asked}
    assert found == ROLES["launcher"]
    assert {one["namespace"] for one in asked} == {"evenkeel"}


def test_where_we_may_not_look_that_is_said_and_the_rest_is_looked_at(healthy: FakeApi, checks: Any) -> None:
    healthy.denied = set(ROLES["doctor"] | ROLES["doctor-cluster"])
    found = checks()
    for name in ("namespace", "account", "quota", "nodes", "claim"):
        (check,) = found[name]
        assert (check.state, "it cannot be looked at" in check.finding) == ("warn", True), name
    assert found["rights"][0].state == "ok"
    assert found["volume"][0].state == "ok"


# What a run asks for


def test_without_settings_of_a_cluster_only_the_cluster_is_looked_at(healthy: FakeApi) -> None:
    found = list(examine(Settings()))
    assert [check.name for check in found] == ["client", "cluster", "jobset", "namespace", "rights", "run"]
    assert "--config configs/kubernetes.yaml" in found[-1].fix


def test_what_the_settings_name_must_be_there(healthy: FakeApi, checks: Any) -> None:
    healthy.served["kueue.x-k8s.io"] = ["v1beta1"]
    healthy.store.remove(("serviceaccounts", "evenkeel", "evenkeel-run"))
    found = checks("launch.kubernetes.queue=gpus", "launch.kubernetes.learner.priority_class=high")
    assert [found[name][0].finding for name in ("account", "queue", "priority")] == [
        "there is no service account evenkeel-run in evenkeel",
        "there is no LocalQueue gpus in evenkeel",
        "there is no PriorityClass high",
    ]
    assert {found[name][0].state for name in ("account", "queue", "priority")} == {"fail"}


def test_a_priority_class_that_cannot_be_looked_at_leaves_the_others(healthy: FakeApi, checks: Any) -> None:
    healthy.faults.add(Fault("status", path="/priorityclasses/first", body={"code": 403, "reason": "Forbidden"}))
    classes = {"learner": "first", "rollout": "second"}
    found = checks(*(f"launch.kubernetes.{role}.priority_class={name}" for role, name in classes.items()))
    assert [check.state for check in found["priority"]] == ["warn", "fail"]


def quota(hard: dict[str, Any], used: dict[str, str]) -> dict[str, Any]:
    """With ``scopes`` among the amounts it is for some pods only."""
    spec = {"scopes": hard.pop("scopes")} if "scopes" in hard else {}
    return {"metadata": {"name": "compute"}, "spec": spec, "status": {"hard": hard, "used": used}}


@pytest.mark.parametrize(
    ("hard", "used", "state", "finding"),
    [
        ({"requests.memory": "1Ti", "pods": "10"}, {"pods": "6"}, "ok", "has room"),
        ({"pods": "10"}, {"pods": "8"}, "warn", "has no room now: pods 3 of 2"),
        ({"pods": "2"}, {}, "fail", "never has room for a run: pods 3 of 2"),
        ({"limits.memory": "16Gi"}, {}, "fail", "limits.memory 20 GiB of 16 GiB"),
        ({"requests.cpu": "6"}, {"requests.cpu": "500m"}, "warn", "requests.cpu 6 of 5.5"),
        ({"cpu": "5"}, {}, "fail", "cpu 6 of 5"),
        ({"count/jobs.batch": "1"}, {}, "fail", "count/jobs.batch 2 of 1"),
        ({"services.loadbalancers": "0"}, {}, "ok", "has room"),
        ({"pods": "0", "scopes": ["BestEffort"]}, {}, "ok", "for some pods only"),
    ],
)
def test_a_quota_has_room_for_the_run(
    healthy: FakeApi, checks: Any, hard: dict[str, Any], used: dict[str, str], state: str, finding: str
) -> None:
    healthy.put("resourcequotas", quota(dict(hard), used))
    (check,) = checks()["quota"]
    assert (check.state, finding in check.finding) == (state, True), check.finding


def rollout(found: dict[str, list[Check]]) -> Check:
    return next(check for check in found["nodes"] if "rollout" in check.finding)


def test_every_role_must_have_nodes_that_its_pods_fit_on(healthy: FakeApi, checks: Any) -> None:
    found = checks()["nodes"]
    assert [(one.state, one.finding.rpartition(": ")[2]) for one in found] == [
        ("ok", "room for 8"),
        ("ok", "room for 8"),
    ]
    check = rollout(checks("launch.kubernetes.rollout.memory=65Gi"))
    assert (check.state, "no node is large enough (memory 65 GiB of 64 GiB)" in check.finding) == ("fail", True)
    assert "launch.kubernetes.rollout.cpu, .memory" in check.fix
    healthy.put("nodes", node(**{"nvidia.com/gpu": "0"}), "")
    gpus = rollout(checks("launch.kubernetes.rollout.gpus=1"))
    assert (gpus.state, "no node is large enough (nvidia.com/gpu 1 of 0)" in gpus.finding) == ("fail", True)


def test_pods_that_fit_on_no_single_node_fail_even_if_all_together_have_room(healthy: FakeApi, checks: Any) -> None:
    healthy.put("nodes", node("node-1", memory="10Gi"), "")
    healthy.put("nodes", node("node-2", cpu="1"), "")
    check = rollout(checks("launch.kubernetes.rollout.memory=32Gi", 'launch.kubernetes.rollout.cpu="4"'))
    assert (check.state, "not all on one node" in check.finding) == ("fail", True)


def test_room_for_some_of_the_pods_is_a_warning(healthy: FakeApi, checks: Any) -> None:
    healthy.put("nodes", node("node-1", cpu="1"), "")
    learner = checks('launch.kubernetes.learner.cpu="1"', 'launch.kubernetes.rollout.cpu="1"')["nodes"][0]
    assert (learner.state, learner.finding.endswith("room for 1")) == ("warn", True)


GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATED = 'launch.kubernetes.rollout.tolerations=[{"key": "nvidia.com/gpu"}]'


@pytest.mark.parametrize(
    ("change", "overrides", "state"),
    [
        ({"cordoned": True}, [], "warn"),
        ({"ready": "Unknown"}, [], "warn"),
        ({}, ['launch.kubernetes.rollout.node_selector={"pool": "small"}'], "warn"),
        ({}, ['launch.kubernetes.rollout.node_selector={"pool": "big"}'], "ok"),
        ({"taints": [GPU_TAINT]}, [], "warn"),
        ({"taints": [GPU_TAINT]}, [TOLERATED], "ok"),
        ({"taints": [GPU_TAINT, {"key": "other", "effect": "NoExecute"}]}, [TOLERATED], "warn"),
        ({"taints": [{**GPU_TAINT, "effect": "PreferNoSchedule"}]}, [], "ok"),
        (
            {"taints": [GPU_TAINT]},
            ['launch.kubernetes.rollout.tolerations=[{"key": "nvidia.com/gpu", "value": "absent"}]'],
            "warn",
        ),
    ],
)
def test_only_nodes_count_that_may_take_the_pods(
    healthy: FakeApi, checks: Any, change: dict[str, Any], overrides: list[str], state: str
) -> None:
    healthy.put("nodes", node(**change), "")
    assert rollout(checks(*overrides)).state == state


# Where the files are


def claim(modes: list[str], phase: str, storage: str | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"accessModes": modes} | ({"storageClassName": storage} if storage else {})
    return {"metadata": {"name": "evenkeel-shared"}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("found", "binding", "state", "finding"),
    [
        (claim(["ReadWriteOnce"], "Bound"), None, "fail", "is ReadWriteOnce: pods on several nodes need ReadWriteMany"),
        (claim(["ReadWriteMany"], "Pending", "nfs"), "WaitForFirstConsumer", "ok", "with the first pod"),
        (claim(["ReadWriteMany"], "Pending", "nfs"), "Immediate", "warn", "has no volume yet (storage class nfs)"),
        (claim(["ReadWriteMany"], "Pending", "nfs"), None, "fail", "a storage class nfs, which is not there"),
        (claim(["ReadWriteMany"], "Pending"), None, "warn", "names no storage class"),
        (claim(["ReadWriteMany"], "Lost"), None, "fail", "the volume of evenkeel-shared is gone"),
    ],
)
def test_the_claim_must_be_for_many_and_have_or_get_a_volume(
    healthy: FakeApi, checks: Any, found: dict[str, Any], binding: str | None, state: str, finding: str
) -> None:
    healthy.put("persistentvolumeclaims", found)
    if binding:
        healthy.put("storageclasses", {"metadata": {"name": "nfs"}, "volumeBindingMode": binding}, "")
    (check,) = checks()["claim"]
    assert (check.state, finding in check.finding) == (state, True), check.finding


@pytest.mark.parametrize(("ignores", "state"), [(set(), "ok"), ({"if-none-match"}, "fail")])
def test_a_bucket_must_honour_conditional_writes(
    healthy: FakeApi, checks: Any, s3_server: Any, ignores: set[str], state: str
) -> None:
    s3_server.app.ignores = ignores
    shared = f'{{"kind": "s3", "uri": "s3://{BUCKET}/runs", "endpoint_url": "{s3_server.url}"}}'
    found = checks("rollout.engine.transfer=broadcast", f"launch.kubernetes.shared={shared}")
    assert "claim" not in found
    assert found["bucket"][0].state == state
    if state == "fail":
        assert "launch.kubernetes.shared.kind volume" in found["bucket"][0].fix


# The command


def test_the_command_shows_both_and_fails_where_something_fails(
    healthy: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "problem_of", lambda python: "")  # it loads torch, and says nothing of clusters
    done = CliRunner().invoke(app, ["doctor", "--kubernetes"])
    assert "python" in done.output
    assert "evenkeel-shared, ReadWriteMany, bound" in done.output
    healthy.stop()
    done = CliRunner().invoke(app, ["doctor", "--kubernetes"])
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", "0.5"),
        ("2", "2"),
        ("64Gi", str(64 * 2**30)),
        ("1e3", "1000"),
        ("1.5k", "1500"),
        ("100n", "1e-7"),
        ("2Ei", str(2**61)),
    ],
)
def test_quantities_are_read_as_kubernetes_writes_them(text: str, value: str) -> None:
    assert amount(text) == Decimal(value)


def test_runs_are_submitted_where_the_volume_is_and_not_by_root(
    checks: Callable[..., dict[str, list[Check]]], healthy: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere,) = checks("launch.kubernetes.shared.path=/nowhere/at/all")["volume"]
    assert elsewhere.state == "warn" and "no run can be submitted from here" in elsewhere.finding
    monkeypatch.setattr(os, "getuid", lambda: 0)
    (found,) = checks()["volume"]
    assert found.state == "fail" and "launch.kubernetes.user" in found.fix
    assert checks("launch.kubernetes.user=1000")["volume"][0].state == "ok"
