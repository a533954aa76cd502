"""What a cluster refuses: the error says what to do, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.config import load
from components.errors import CorrectableError, InputError
from components.launch import Job
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.api.errors import Refused
from components.launch.kubernetes.janitor import sweep
from components.launch.kubernetes.launcher import KubernetesLauncher
from components.launch.kubernetes.manifests import jobset
from components.launch.kubernetes.names import DEADLINE, GROUP, PLURAL, VERSION
from tests.cluster.conftest import Place
from tests.cluster.runs import ALONE, SMALL_PODS, await_, on, planned
from tests.kubernetes.profiles import CPU, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def job(place: Place, folder: Path, name: str, *overrides: str) -> Job:
    workspace = folder / name
    workspace.mkdir()
    workspace.chmod(0o777)  # for the user of the pods
    chosen = load(ROOT / CPU, [*ALONE, *SMALL_PODS, *on(place, path=str(folder)), *overrides])
    return Job("train", chosen, workspace)


def test_a_namespace_that_is_not_there(place: Place, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="nowhere") as refusal:
        KubernetesLauncher().submit(job(place, tmp_path, "nowhere", "launch.kubernetes.namespace=nowhere"))
    assert "kubectl" in str(refusal.value)


def test_a_context_that_is_not_there(place: Place, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no-such-context"):
        KubernetesLauncher().submit(job(place, tmp_path, "context", "launch.kubernetes.context=no-such-context"))


def test_a_quota_that_is_used_up(place: Place, tmp_path: Path) -> None:
    hard = {"count/jobsets.jobset.x-k8s.io": "0"}
    place.core.create_namespaced_resource_quota(place.namespace, {"metadata": {"name": "none"}, "spec": {"hard": hard}})
    cluster, wanted, refusals = (
        Cluster.connect(place.namespace),
        job(place, tmp_path, "quota"),
        list[CorrectableError](),
    )

    def refused() -> bool:
        """A quota counts from when its controller has seen it."""
        try:
            launcher = KubernetesLauncher()
            launcher.cancel(launcher.submit(wanted))
        except CorrectableError as error:
            refusals.append(error)
        return bool(refusals)

    try:
        await_("the quota is known", refused, 60)
        assert "quota" in str(refusals[0]) and refusals[0].how
        await_("nothing is left", lambda: cluster.jobset("quota") is None, 30)
    finally:
        place.core.delete_namespaced_resource_quota("none", place.namespace)


def test_the_janitor_removes_only_evenkeel_jobsets_past_their_deadline(place: Place) -> None:
    cluster = Cluster.connect(place.namespace)
    late, alive, foreign = (jobset(planned(name, [*ALONE, *SMALL_PODS, *on(place)])) for name in ("late", "alive", "x"))
    late["metadata"]["annotations"][DEADLINE] = "2020-01-01T00:00:00Z"
    foreign["metadata"]["labels"] = {}
    foreign["metadata"]["annotations"][DEADLINE] = "2020-01-01T00:00:00Z"
    for one in (late, alive, foreign):
        one["spec"]["suspend"] = one is not late  # a deadline counts from when a queue lets a run in
        place.custom.create_namespaced_custom_object(GROUP, VERSION, place.namespace, PLURAL, one)
    assert [removal.name for removal in sweep(cluster, lambda run, workspace: None)] == ["late"]
    await_("it is gone", lambda: cluster.jobset("late") is None, 60)
    for name in ("alive", "x"):
        there = cluster.jobset(name)
        assert there is not None
        cluster.delete_jobset(name, there["metadata"]["uid"])
