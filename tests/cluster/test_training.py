"""Training in pods, of the project's own code, on nodes that run them: it ends with the bytes that it has here."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.config import Settings
from components.installed import record
from components.launch.base import JobStatus
from components.launch.kubernetes.launcher import KubernetesLauncher
from tests.cluster.conftest import Place
from tests.cluster.runs import await_, jobset_of, pods_of
from tests.cluster.training import (
    ALONE,
    TWO_NODES,
    checkpoints,
    copy,
    open_to_all,
    prepare,
    run_here,
    settings,
    train,
    trained,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def alone(place: Place, image: str, shared: tuple[str, Path]) -> Settings:
    return settings(place, image, shared[1], ALONE)


@pytest.fixture(scope="module")
def prepared(alone: Settings, shared: tuple[str, Path]) -> Path:
    return prepare(shared[1] / "prepared", alone)


@pytest.fixture(scope="module")
def expected(prepared: Path) -> str:
    """What training gives that runs in a process of this machine."""
    workspace = copy(prepared, "here")
    run_here(workspace, "train")
    return trained(workspace)


class Waiting:
    """A launcher that waits for a run in a thread, as a stage does in a process."""

    def __init__(self, workspace: Path, chosen: Settings) -> None:
        self.launcher, self.name = KubernetesLauncher(), ""
        self._status: list[JobStatus] = []
        self.name = self.launcher.submit(train(workspace, chosen))
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        self._status.append(self.launcher.wait(self.name, poll=2))

    def end(self, seconds: float = 400) -> JobStatus:
        self._thread.join(seconds)
        assert self._status, f"{self.name} has not ended within {seconds:g} s"
        return self._status[0]


@pytest.fixture
def leftovers(place: Place) -> Iterator[None]:
    """Pods of one test take no processor from the next."""
    yield
    for one in place.custom.list_namespaced_custom_object("jobset.x-k8s.io", "v1alpha2", place.namespace, "jobsets")[
        "items"
    ]:
        place.custom.delete_namespaced_custom_object(
            "jobset.x-k8s.io", "v1alpha2", place.namespace, "jobsets", one["metadata"]["name"]
        )


pytestmark.append(pytest.mark.usefixtures("leftovers"))


def evict(place: Place, name: str, node: int = 0) -> None:
    pod = pods_of(place, name)[node].metadata.name
    place.core.create_namespaced_pod_eviction(pod, place.namespace, {"metadata": {"name": pod}})


def restarts(place: Place, name: str) -> tuple[int, int]:
    status = jobset_of(place, name).get("status", {})
    return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)


def test_a_pod_trains_to_the_very_bytes_of_this_machine(
    place: Place, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "undisturbed")
    run = Waiting(workspace, alone)
    assert run.end() == JobStatus("succeeded", 0)
    assert trained(workspace) == expected
    log = (workspace / "logs" / "driver.log").read_text("utf-8")
    (pod,) = pods_of(place, run.name)
    said = place.core.read_namespaced_pod_log(pod.metadata.name, place.namespace)
    assert "train" in log and said.splitlines() == log.splitlines()


def test_a_project_without_a_checkout_trains_to_the_same_bytes_by_the_installed_package(
    prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "own")
    shutil.rmtree(workspace / "components")
    record(workspace)
    assert Waiting(workspace, alone).end() == JobStatus("succeeded", 0)
    assert trained(workspace) == expected


def test_an_evicted_pod_leaves_a_checkpoint_and_its_successor_comes_to_the_same_bytes(
    place: Place, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "evicted")
    run = Waiting(workspace, alone)
    await_("a first checkpoint", lambda: any(checkpoints(workspace)), 200)
    evict(place, run.name)
    assert run.end() == JobStatus("succeeded", 0)
    assert restarts(place, run.name) == (1, 0)
    assert trained(workspace) == expected


def test_a_run_that_is_cancelled_goes_and_started_again_goes_on(
    place: Place, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "cancelled")
    run = Waiting(workspace, alone)
    await_("a first checkpoint", lambda: any(checkpoints(workspace)), 200)
    run.launcher.cancel(run.name)
    assert run.end().state == "cancelled"
    await_("nothing is left", lambda: not pods_of(place, run.name), 120)
    reached = max(checkpoints(workspace))
    assert reached > 0
    open_to_all(workspace)
    again = Waiting(workspace, alone)
    assert again.end() == JobStatus("succeeded", 0)
    assert trained(workspace) == expected


def test_whoever_submits_a_run_again_that_is_at_work_takes_it_over(
    place: Place, prepared: Path, alone: Settings, expected: str
) -> None:
    workspace = copy(prepared, "taken-over")
    KubernetesLauncher().submit(train(workspace, alone))  # and dies
    uid = jobset_of(place, "taken-over")["metadata"]["uid"]
    run = Waiting(workspace, alone)
    assert jobset_of(place, run.name)["metadata"]["uid"] == uid
    assert run.end() == JobStatus("succeeded", 0)
    assert trained(workspace) == expected


def test_what_the_stage_refuses_is_said_in_its_own_words_and_not_tried_again(
    place: Place, prepared: Path, alone: Settings
) -> None:
    workspace = copy(prepared, "refused")
    (workspace / "out" / "triage.json").unlink()
    run = Waiting(workspace, alone)
    status = run.end()
    assert (status.state, status.exit_code) == ("failed", 2)
    assert "run the triage stage first" in status.message
    assert restarts(place, run.name) == (0, 0)


def test_other_code_than_that_of_the_run_is_refused(place: Place, prepared: Path, alone: Settings) -> None:
    workspace = copy(prepared, "other-code")
    (workspace / "components" / "errors.py").open("a").write("# changed meanwhile\n")
    status = Waiting(workspace, alone).end()
    assert (status.state, status.exit_code) == ("failed", 2)
    assert "other code than that of the run" in status.message


@pytest.mark.parametrize("node", [0, 1])
def test_a_learner_of_two_nodes_survives_the_eviction_of_a_pod(
    place: Place, image: str, shared: tuple[str, Path], prepared: Path, node: int
) -> None:
    chosen = settings(place, image, shared[1], TWO_NODES)
    workspace = copy(prepared, f"nodes-{node}")
    run = Waiting(workspace, chosen)
    await_("a first checkpoint", lambda: any(checkpoints(workspace)), 300)
    evict(place, run.name, node)
    assert run.end(600) == JobStatus("succeeded", 0)
    assert restarts(place, run.name) == (1, 0)
    assert (workspace / "out" / "train" / "checkpoint" / "model.safetensors").exists()
