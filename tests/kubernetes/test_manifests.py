"""A run's objects: kept as they are meant to be, and held against what a server takes."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from components.config import load
from components.launch.kubernetes.manifests import as_yaml, jobset
from components.launch.kubernetes.plan import plan_run
from tests.kubernetes.profiles import CPU, GPU, PROFILES, ROOT, golden, plan
from tests.kubernetes.validation import problems


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_what_it_was(name: str) -> None:
    """Where a change is meant: ``python -m tests.kubernetes.profiles``, and look at the difference."""
    assert as_yaml(jobset(plan(name))) == golden(name).read_text("utf-8")


@pytest.mark.parametrize("name", PROFILES)
def test_a_strict_server_would_take_it(name: str) -> None:
    assert problems(yaml.safe_load(golden(name).read_text("utf-8"))) == []


def spoilt(path: str, value: Any) -> dict[str, Any]:
    manifest = copy.deepcopy(jobset(plan("gpu")))
    *parents, last = path.split(".")
    place: Any = manifest
    for key in parents:
        place = place[int(key)] if key.isdigit() else place[key]
    place[last] = value
    return manifest


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.replicatedjobs", []),
        ("spec.failurePolicy.maxRestart", 3),
        ("spec.failurePolicy.rules.0.action", "Restart"),
        ("spec.network.subdomain", 5),
        ("spec.replicatedJobs.0.template.podFailurePolicy", {"rules": []}),
        ("spec.replicatedJobs.0.template.spec.backofflimit", 0),
        ("spec.replicatedJobs.0.template.spec.template.spec.automountServiceAccountTokens", False),
        ("spec.replicatedJobs.1.template.spec.template.spec.containers.0.readinessProbes", {}),
        ("spec.replicatedJobs.1.template.spec.template.spec.containers.0.resources.limit", {}),
    ],
)
def test_the_schema_notices_a_field_that_is_misspelt_or_in_the_wrong_place(path: str, value: Any) -> None:
    assert problems(spoilt(path, value)) != []


def job(name: str, role: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in jobset(plan(name))["spec"]["replicatedJobs"] if one["name"] == role)
    return found["template"]["spec"]


def container(name: str, role: str) -> dict[str, Any]:
    found: dict[str, Any] = job(name, role)["template"]["spec"]["containers"][0]
    return found


def test_the_run_succeeds_when_its_learner_does() -> None:
    assert jobset(plan("cpu"))["spec"]["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["learner"]}


def test_a_pod_that_is_evicted_is_a_disruption_whatever_code_it_ends_with() -> None:
    first = job("cpu", "learner")["podFailurePolicy"]["rules"][0]
    assert first["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


def test_servers_are_replaced_one_by_one_and_evicted_ones_are_not_counted() -> None:
    servers = job("gpu", "rollout")
    assert servers["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    assert servers["backoffLimit"] == 6 and servers["completions"] == servers["parallelism"] == 8


def test_a_server_that_refuses_its_arguments_is_not_replaced() -> None:
    _, refused = job("gpu", "rollout")["podFailurePolicy"]["rules"]
    assert refused == {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}


def test_a_time_that_is_over_is_decided_before_the_stops_that_follow_from_it() -> None:
    """The controller takes the first rule that fits any job, whichever failed first."""
    overdue, *rest = jobset(plan("cpu"))["spec"]["failurePolicy"]["rules"]
    assert overdue["action"] == "FailJobSet" and overdue["onJobFailureReasons"] == ["DeadlineExceeded"]
    assert [rule["name"] for rule in rest] == ["disrupted", "hopeless"]


def test_who_has_lost_another_lingers_until_all_of_its_pods_must_have_ended() -> None:
    pod = job("cpu", "learner")["template"]["spec"]
    linger = next(one["value"] for one in pod["containers"][0]["env"] if one["name"] == "EVENKEEL_LINGER")
    assert float(linger) > pod["terminationGracePeriodSeconds"]


def test_servers_have_time_to_end_what_they_are_at() -> None:
    pod = job("cpu", "rollout")["template"]["spec"]
    drain = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > drain


def test_learner_pods_meet_where_dns_finds_the_first_of_them() -> None:
    command = container("gpu", "learner")["command"]
    assert command[command.index("--rendezvous") + 1] == "arithmetic-1-learner-0-0.arithmetic-1:29500"
    assert command[command.index("--nodes") + 1] == "2" and command[command.index("--processes") + 1] == "8"


def test_the_pods_know_where_the_servers_are() -> None:
    settings = plan("gpu").settings
    assert settings.launch.kind == "processes"
    urls = settings.rollout.engine.urls  # type: ignore[union-attr]
    assert len(urls) == 8 and urls[7] == "http://arithmetic-1-rollout-0-7.arithmetic-1:8000"


def test_a_learner_of_one_rank_with_its_own_engine_is_one_pod_without_torchrun() -> None:
    (learner,) = plan("one-pod").roles
    assert (learner.name, learner.count) == ("learner", 1)
    assert "--rendezvous" not in learner.command and "rendezvous" not in learner.ports


def test_only_a_learner_of_one_pod_is_scraped_by_annotations_which_every_pod_of_a_job_has() -> None:
    one, several = (job(name, "learner")["template"]["metadata"].get("annotations", {}) for name in ("one-pod", "cpu"))
    assert one["prometheus.io/port"] == "9400" and "prometheus.io/scrape" not in several


def test_sft_has_the_ranks_of_training_and_no_server() -> None:
    (learner,) = plan_run(load(ROOT / GPU), replace(plan("gpu").submission, stage="sft")).roles
    train, _ = plan("gpu").roles
    assert (learner.count, learner.ports) == (train.count, train.ports)
    assert learner.command[:4] == ("python", "-m", "components.pods.learner", "sft")
    assert (
        learner.command[learner.command.index("--rendezvous") + 1]
        == "arithmetic-1-sft-learner-0-0.arithmetic-1-sft:29500"
    )


def test_a_stage_without_a_learner_has_one_pod_whatever_the_ranks_of_training() -> None:
    learner, *_ = plan_run(load(ROOT / GPU), replace(plan("gpu").submission, stage="triage")).roles
    assert (learner.name, learner.count) == ("learner", 1)
    assert "--nodes" not in learner.command


def test_with_s3_every_pod_fetches_its_files_first_and_only_learner_and_fetcher_hold_credentials() -> None:
    for role in ("learner", "rollout"):
        spec = job("s3", role)["template"]["spec"]
        assert [one["name"] for one in spec["initContainers"]] == ["fetch"]
        assert spec["initContainers"][0]["envFrom"] == [{"secretRef": {"name": "evenkeel-s3"}}]
        assert ("envFrom" in spec["containers"][0]) == (role == "learner")


def test_a_queue_places_by_kueues_topology_and_without_one_pods_ask_for_it_themselves() -> None:
    queued, free = (job(name, "learner")["template"] for name in ("queued", "gpu"))
    assert queued["metadata"]["annotations"] == {
        "kueue.x-k8s.io/podset-required-topology": "topology.kubernetes.io/zone"
    }
    assert "affinity" not in queued["spec"] and "annotations" not in free["metadata"]
    assert "podAffinity" in free["spec"]["affinity"]
    assert jobset(plan("queued"))["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "training"


def test_two_submissions_at_different_times_ask_for_the_same() -> None:
    early = plan("cpu")
    late = plan_run(load(ROOT / CPU), replace(early.submission, now=early.submission.now + timedelta(days=1)))
    annotations = [jobset(one)["metadata"]["annotations"] for one in (early, late)]
    assert annotations[0]["evenkeel/spec"] == annotations[1]["evenkeel/spec"]
    assert annotations[0]["evenkeel/deadline"] != annotations[1]["evenkeel/deadline"]


@pytest.mark.parametrize("change", ["train.steps=7", "launch.kubernetes.max_restarts=9"])
def test_other_settings_are_another_submission_also_where_only_the_pods_file_has_them(change: str) -> None:
    asked = [jobset(plan("cpu", *changes))["metadata"]["annotations"]["evenkeel/spec"] for changes in ((), (change,))]
    assert asked[0] != asked[1]
