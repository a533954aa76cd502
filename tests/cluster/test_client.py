"""The client against a real API server; and that the fake one of tests/kubernetes says the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.config import load
from components.launch.kubernetes.api import Cluster, Exists, Refused
from components.launch.kubernetes.api.resources import QUEUES
from components.launch.kubernetes.doctor import examine
from components.launch.kubernetes.janitor import sweep
from components.launch.kubernetes.observed import changes, gather
from components.launch.kubernetes.permissions import ROLES
from components.launch.kubernetes.status import status_of
from tests.cluster.conftest import Place
from tests.kubernetes.fake_api import FakeApi, kubeconfig
from tests.kubernetes.objects import jobset

pytestmark = pytest.mark.cluster


def held(name: str = "demo-1", **metadata: Any) -> dict[str, Any]:
    """A JobSet that starts nothing: it is suspended, as one that waits for a queue."""
    pods = {"restartPolicy": "Never", "containers": [{"name": "learner", "image": "example.com/none:1"}]}
    template = {"spec": {"template": {"spec": pods}}}
    return {
        **jobset(name, **metadata),
        "spec": {"suspend": True, "replicatedJobs": [{"name": "learner", "template": template}]},
    }


@pytest.fixture
def cluster(place: Place) -> Iterator[Cluster]:
    """The namespace, which is empty again afterwards."""
    found = Cluster.connect(place.namespace)
    yield found
    for one in found.jobsets(""):
        found.delete_jobset(one["metadata"]["name"], one["metadata"]["uid"])
    gone(found)


def gone(cluster: Cluster) -> None:
    until(lambda: cluster.jobsets("") == [])


def until(true: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.1)


@pytest.fixture
def contents() -> dict[str, Any]:
    """The kubeconfig that leads to the server."""
    import os

    found: dict[str, Any] = yaml.safe_load(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]).read_text("utf-8"))
    return found


def logged_in(contents: dict[str, Any], user: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As somebody else, for the rest of the test."""
    for one in contents["users"]:
        one["user"] = user
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(contents), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(path))


def test_a_jobset_is_tried_made_seen_and_removed(cluster: Cluster) -> None:
    cluster.dry_run(held())
    assert cluster.jobset("demo-1") is None
    made = cluster.create(held())
    assert [one["metadata"]["uid"] for one in cluster.jobsets("evenkeel/run=demo-1")] == [made["metadata"]["uid"]]
    status = status_of(gather(cluster, "demo-1"))
    assert (status.state, "is suspended by somebody" in status.message) == ("pending", True)
    cluster.delete_jobset("demo-1", "00000000-0000-0000-0000-000000000000")
    assert cluster.jobset("demo-1") is not None
    cluster.delete_jobset("demo-1", made["metadata"]["uid"])
    gone(cluster)
    assert status_of(gather(cluster, "demo-1")).state == "failed"
    cluster.delete_jobset("demo-1", made["metadata"]["uid"])


def test_a_change_is_reported_when_it_happens(cluster: Cluster, place: Place) -> None:
    made = cluster.create(held())
    looks: list[str] = []

    def look() -> None:
        for _ in changes(cluster, "demo-1", 600.0):
            found = cluster.jobset("demo-1")
            looks.append(found["metadata"].get("labels", {}).get("changed", "") if found else "gone")
            if looks[-1] == "gone":
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    until(lambda: looks != [])
    group = ("jobset.x-k8s.io", "v1alpha2", place.namespace, "jobsets", "demo-1")
    place.custom.patch_namespaced_custom_object(*group, {"metadata": {"labels": {"changed": "yes"}}})
    until(lambda: "yes" in looks)
    cluster.delete_jobset("demo-1", made["metadata"]["uid"])
    thread.join(60)
    assert looks[-1] == "gone"


def test_the_janitor_removes_abandoned_jobsets(cluster: Cluster) -> None:
    own = {"evenkeel/workspace": "/shared/run"}
    late = {**own, "evenkeel/deadline": f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"}
    begun = held("late-1", annotations=late)
    begun["spec"]["suspend"] = False  # a deadline counts from when a queue lets a run in
    cluster.create(begun)
    cluster.create(held("dead-1", annotations=own))
    cluster.create(held("living-1", annotations=own))
    removed = sweep(cluster, lambda run, workspace: run != "dead-1")
    assert {one.name for one in removed} == {"late-1", "dead-1"}
    until(lambda: [one["metadata"]["name"] for one in cluster.jobsets("")] == ["living-1"])


def test_the_doctor_finds_nothing_that_fails_in_a_namespace_as_the_platform_makes_it(place: Place) -> None:
    # The tests' namespace has no claim, and its nodes may be small.
    settings = load(Path("configs/kubernetes.yaml"), [f"launch.kubernetes.namespace={place.namespace}"])
    found = {check.name: check for check in examine(settings)}
    assert {found[name].state for name in ("client", "jobset", "namespace", "rights", "account")} == {"ok"}
    assert found["cluster"].state != "fail"
    assert found["claim"].finding == f"there is no claim evenkeel-shared in {place.namespace}"


def test_an_account_without_rights_gets_an_error_that_names_them(
    place: Place, contents: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account of the pods, which has none."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    made = place.core.create_namespaced_service_account_token("evenkeel-run", place.namespace, request)
    logged_in(contents, {"token": made.status.token}, tmp_path, monkeypatch)
    cluster = Cluster.connect(place.namespace)
    assert not any(cluster.may(one) for one in ROLES["launcher"])
    account = f"system:serviceaccount:{place.namespace}:evenkeel-run"
    with pytest.raises(Refused) as caught:
        cluster.pods("a=b")
    assert caught.value.what == f"{account} may not list pods in namespace {place.namespace}"
    settings = load(Path("configs/kubernetes.yaml"), [f"launch.kubernetes.namespace={place.namespace}"])
    found = list(examine(settings))
    assert sum(check.name == "rights" and check.state == "fail" for check in found) == len(ROLES["launcher"])
    assert {check.state for check in found if check.name in ("namespace", "quota", "nodes", "claim")} == {"warn"}


# What goes wrong, at both servers


def exists(cluster: Cluster) -> None:
    cluster.create(held())
    cluster.create(held())


def elsewhere(cluster: Cluster) -> None:
    Cluster(cluster.connection, cluster.patience, "evenkeel-nowhere").create(held())


def not_served(cluster: Cluster) -> None:
    cluster.found(QUEUES, "gpus")


FAILURES: dict[str, tuple[Callable[[Cluster], None], type[Refused]]] = {
    "exists": (exists, Exists),
    "no namespace": (elsewhere, Refused),
    "not served": (not_served, Refused),
}


@pytest.mark.parametrize("name", FAILURES)
def test_the_fake_server_refuses_with_the_same_error(
    cluster: Cluster, place: Place, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause, kind = FAILURES[name]
    if name == "not served" and cluster.versions("kueue.x-k8s.io"):
        pytest.skip("Kueue is installed")

    def refusal(asked: Cluster) -> tuple[str, str | None]:
        with pytest.raises(kind) as caught:
            cause(asked)
        return caught.value.what, caught.value.how

    real = refusal(cluster)
    with FakeApi().running() as api:
        api.namespaces = {place.namespace}
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "fake", api.url)))
        assert refusal(Cluster.connect(place.namespace)) == real


def test_an_unknown_field_is_named(cluster: Cluster) -> None:
    manifest = held()
    manifest["spec"]["replicas"] = 3
    with pytest.raises(Refused, match=r'unknown field "spec\.replicas"'):
        cluster.dry_run(manifest)


def test_what_jobset_itself_refuses_is_reported_as_invalid(cluster: Cluster) -> None:
    manifest = held()
    manifest["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["no-such-job"]}
    with pytest.raises(Refused, match=r"the cluster does not accept JobSet demo-1: .*no-such-job") as caught:
        cluster.dry_run(manifest)
    assert "change the setting" in (caught.value.how or "")


@pytest.mark.parametrize(
    ("user", "what"),
    [({"token": "not-a-token"}, "does not accept the credentials"), ({}, "has no credentials|may not get jobsets")],
)
def test_invalid_and_missing_credentials_are_reported(
    contents: dict[str, Any],
    user: dict[str, str],
    what: str,
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged_in(contents, user, tmp_path, monkeypatch)
    with pytest.raises(Refused, match=what):
        Cluster.connect(place.namespace).jobset("demo-1")
