"""Training in pods that share nothing but a bucket: it ends with the bytes that it has here, whatever happens."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from components.config import Settings
from components.launch.base import JobStatus
from components.launch.kubernetes.launcher import KubernetesLauncher
from components.pods.depot import Depot
from components.pods.parcels import parcels, read
from tests.cluster.conftest import Place
from tests.cluster.runs import await_, jobset_of, pods_of
from tests.cluster.test_training import Waiting, evict, leftovers, restarts
from tests.cluster.training import ALONE, TWO_NODES, copy, prepare, run_here, settings, train, trained
from tests.s3_faults import Fault, FaultyProxy
from tests.s3_server import BUCKET, KEYS, S3Server

__all__ = ["leftovers"]
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200), pytest.mark.usefixtures("leftovers")]
SECRET = "store"
FOR_EVER = 10**6
CREDENTIALS = [KEYS[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")]


@dataclass
class Store:
    """A bucket that pods reach, what goes wrong on the way to it, and where in it runs are kept."""

    server: S3Server
    proxy: FaultyProxy
    prefix: str

    @property
    def shared(self) -> str:
        return f"{{kind: s3, uri: 's3://{BUCKET}/{self.prefix}', endpoint_url: '{self.proxy.url}', region: us-east-1}}"

    def depot(self, run: str) -> Depot:
        return Depot(f"s3://{BUCKET}/{self.prefix}/{run}/train", self.server.url)

    def states(self, run: str) -> list[str]:
        """The states of a run that are whole."""
        return parcels(self.depot(run).bucket("state"))


@pytest.fixture(scope="module")
def store(place: Place) -> Iterator[Store]:
    host = os.environ.get("EVENKEEL_TEST_HOST", "")
    if not host:
        pytest.skip("EVENKEEL_TEST_HOST names no address of this machine that pods reach")
    with pytest.MonkeyPatch.context() as patch, S3Server().running() as server:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        body = {"metadata": {"name": SECRET}, "stringData": {**KEYS}}
        place.core.create_namespaced_secret(place.namespace, body)
        with FaultyProxy(server.port, host).running() as proxy:
            yield Store(server, proxy, uuid4().hex)


@pytest.fixture(autouse=True)
def faults_cleared(store: Store) -> Iterator[None]:
    """The faults of one test do not affect the others."""
    yield
    store.proxy.faults.clear()


def chosen(place: Place, image: str, store: Store, overrides: Sequence[str]) -> Settings:
    how = "launch.kubernetes"
    bucket = [f"{how}.shared={store.shared}", f"{how}.secrets=[{SECRET}]", f"{how}.max_restarts=1"]
    return settings(place, image, Path("/shared"), [*overrides, *bucket])


@pytest.fixture(scope="module")
def alone(place: Place, code_image: str, store: Store) -> Settings:
    return chosen(place, code_image, store, ALONE)


@pytest.fixture(scope="module")
def prepared(alone: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("bucket") / "prepared", alone)


@pytest.fixture(scope="module")
def expected(prepared: Path) -> str:
    """What training gives that runs in a process of this machine."""
    workspace = copy(prepared, "here")
    run_here(workspace, "train")
    return trained(workspace)


def everything_said(place: Place, workspace: Path) -> str:
    """What anybody sees of a run who may not read secrets."""
    found: list[Any] = [jobset_of(place, workspace.name), *place.core.list_namespaced_event(place.namespace).items]
    for pod in pods_of(place, workspace.name):
        begun = [*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())]
        for one in (one for one in begun if one.state.waiting is None):
            found.append(place.core.read_namespaced_pod_log(pod.metadata.name, place.namespace, container=one.name))
        found.append(pod)
    return "\n".join(map(str, found))


def test_pods_that_share_nothing_train_to_the_very_bytes_of_this_machine(
    place: Place, store: Store, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "bucket")
    run = Waiting(workspace, alone)
    assert run.end() == JobStatus("succeeded", 0)
    assert trained(workspace) == expected
    assert "train" in (workspace / "logs" / "driver.log").read_text("utf-8")
    said = everything_said(place, workspace)
    assert not [secret for secret in CREDENTIALS if secret in said]


def test_an_evicted_pod_leaves_its_checkpoint_in_the_bucket_and_its_successor_comes_to_the_same_bytes(
    place: Place, store: Store, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "bucket-evicted")
    run = Waiting(workspace, alone)
    await_("a first checkpoint", lambda: bool(store.states(run.name)), 300)
    evict(place, run.name)
    assert run.end() == JobStatus("succeeded", 0)
    assert restarts(place, run.name) == (1, 0)
    assert "was brought here" in (workspace / "logs" / "driver.log").read_text("utf-8")
    assert trained(workspace) == expected


def test_a_bucket_that_is_away_for_a_while_costs_nothing(
    place: Place, store: Store, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "bucket-away")
    run = Waiting(workspace, alone)
    await_("a first checkpoint", lambda: bool(store.states(run.name)), 200)
    store.proxy.faults.append(Fault("reset", times=FOR_EVER))
    time.sleep(15)
    store.proxy.faults.clear()
    assert run.end() == JobStatus("succeeded", 0)
    assert restarts(place, run.name) == (0, 0)
    assert trained(workspace) == expected


def test_a_run_whose_submitter_has_died_gives_its_output_to_whoever_submits_it_again(
    place: Place, store: Store, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "bucket-left")
    KubernetesLauncher().submit(train(workspace, alone))
    uid = jobset_of(place, "bucket-left")["metadata"]["uid"]
    run = Waiting(workspace, alone)
    assert jobset_of(place, run.name)["metadata"]["uid"] == uid
    assert run.end() == JobStatus("succeeded", 0)
    assert trained(workspace) == expected


def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    place: Place, store: Store, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "bucket-damaged")
    run = Waiting(workspace, alone)
    await_("two checkpoints", lambda: len(store.states(run.name)) > 1, 200)
    store.proxy.faults.append(Fault("503", method="PUT", times=FOR_EVER))  # no other comes
    bucket = store.depot(run.name).bucket("state")
    older, newest = (read(bucket, name) for name in store.states(run.name)[-2:])
    truncated = f"{bucket.prefix}blobs/{min(newest.blobs - older.blobs)}"
    store.server.client.put_object(Bucket=BUCKET, Key=truncated, Body=b"")
    pod = pods_of(place, run.name)[0].metadata.name
    place.core.delete_namespaced_pod(pod, place.namespace, grace_period_seconds=0)
    await_("it restarts", lambda: restarts(place, run.name)[0] == 1, 200)
    store.proxy.faults.clear()
    assert run.end() == JobStatus("succeeded", 0)
    assert trained(workspace) == expected


@pytest.mark.parametrize("path", ["manifests/input.json", "/blobs/"])
def test_a_bucket_that_refuses_ends_the_run_at_once_and_says_so(
    place: Place, store: Store, prepared: Path, alone: Settings, path: str
) -> None:
    workspace = copy(prepared, f"bucket-denied-{path.strip('/').partition('/')[0]}")
    store.proxy.faults.append(
        Fault("telling", method="GET", path=f"{workspace.name}/train/input.*{path}", times=FOR_EVER)
    )
    run = Waiting(workspace, alone)
    status = run.end()
    assert (status.state, status.exit_code) == ("failed", 2)
    assert "AccessDenied" in status.message
    assert restarts(place, run.name) == (0, 0)
    said = everything_said(place, workspace) + status.message
    assert not [secret for secret in CREDENTIALS if secret in said]


@pytest.mark.parametrize("node", [0, 1])
def test_ranks_without_a_folder_in_common_survive_the_eviction_of_a_pod(
    place: Place, code_image: str, store: Store, prepared: Path, node: int
) -> None:
    workspace = copy(prepared, f"bucket-nodes-{node}")
    run = Waiting(workspace, chosen(place, code_image, store, TWO_NODES))
    await_("a first checkpoint", lambda: bool(store.states(run.name)), 500)
    evict(place, run.name, node)
    assert run.end(600) == JobStatus("succeeded", 0)
    assert restarts(place, run.name) == (1, 0)
    assert (workspace / "out" / "train" / "checkpoint" / "model.safetensors").exists()
    said = everything_said(place, workspace)
    assert not [secret for secret in CREDENTIALS if secret in said]
