"""The usual deaths, as a real cluster shows them, each with what to do about it."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from components.launch.kubernetes.diagnosis import CAUSES, diagnose
from components.pods.ending import termination_message as written
from components.status import StageStatus
from tests.kubernetes.scenes import NAMES, content, observed, of_role, scene

FOUND: dict[str, dict[str, tuple[str, str]]] = {
    "account-missing": {"refused": ('serviceaccount "nope" not found', "launch.kubernetes.service_account")},
    "bad-input": {"exit": ("learner ended with exit code 2", "kubectl -n evenkeel logs bad-learner-0-0-kb9xc")},
    "claim-missing": {"unschedulable": ('persistentvolumeclaim "nope" not found', "launch.kubernetes.shared.claim")},
    "command-missing": {"configuration": ("stat /nope: no such file", "the image lacks the command")},
    "crashes": {"exit": ("learner ended 2 times with exit code 1: boom", "-c learner")},
    "deadline": {"deadline": (r"learner took longer than it may \(3 s\)", "launch.kubernetes.deadline")},
    "disk-evicted": {"taken": ("learner was evicted: Pod ephemeral", "launch.kubernetes.learner.disk")},
    "drained": {"taken": ("learner was moved away: Eviction API: evicting", "nothing has to be done")},
    "fetch-bad-input": {"init": ("fetch of learner ended with exit code 2: no such bucket", "-c fetch")},
    "fetch-fails": {"init": ("fetch of learner ended with exit code 1: server away", "launch.kubernetes.shared")},
    "image-as-root": {"configuration": ("image will run as root", "a number other than 0")},
    "image-not-there": {
        "image": (r"cannot be pulled \(ImagePullBackOff\): failed to pull", "cannot reach the registry")
    },
    "learner-bad-input": {"exit": ("learner ended with exit code 2 .*: bad code", "-c learner")},
    "liveness": {"probe": ("rollout does not answer: Liveness probe failed", "-c rollout")},
    "no-controller": {"ignored": ("nothing has begun to work on the JobSet", "kubectl -n jobset-system get pods")},
    "node-lost": {"node lost": ("the node node-2 of learner is lost", "kubectl delete node node-2")},
    "out-of-memory": {
        "out of memory": ("learner ran out of memory, its limit is 32Mi", "launch.kubernetes.learner.memory")
    },
    "pod-security": {"refused": ('violates PodSecurity "restricted:latest"', "something changes them")},
    "preempted": {"taken": ("learner had to make room", "launch.kubernetes.learner.priority_class")},
    "priority-class-missing": {
        "refused": ("no PriorityClass with name nope", "launch.kubernetes.learner.priority_class")
    },
    "quota": {"refused": ("quota has no room for learner: .*exceeded quota: compute", "describe resourcequota")},
    "secret-entry-missing": {"configuration": ("couldn't find key nokey", "that Secret lacks the entry")},
    "secret-missing": {"configuration": ('secret "nope" not found', "launch.kubernetes.secrets")},
    "startup": {"probe": ("rollout did not answer in time: Startup probe failed", "rollout.engine.start_timeout")},
    "too-many-gpus": {"unschedulable": (r"Insufficient nvidia\.com/gpu", "launch.kubernetes.learner.gpus")},
    "too-much-memory": {"unschedulable": ("Insufficient memory", "launch.kubernetes.learner.memory")},
    "volume-secret-missing": {"volume": ('secret "nope" not found', "launch.kubernetes.secrets")},
}
"""Scene -> cause -> what is said of it, and what is advised. In the others nothing is to be fixed."""


@pytest.mark.parametrize("name", NAMES)
def test_every_scene_has_its_causes_and_no_other(name: str) -> None:
    found = {cause: list(find(scene(name))) for cause, find in CAUSES.items()}
    assert {cause for cause, findings in found.items() if findings} == set(FOUND.get(name, {}))
    for cause, (what, how) in FOUND.get(name, {}).items():
        for finding in found[cause]:
            assert re.search(what, finding.what), finding.what
            assert how in finding.how or how in found[cause][0].how


def test_every_cause_has_been_seen() -> None:
    assert {cause for causes in FOUND.values() for cause in causes} == set(CAUSES)


@pytest.mark.parametrize("name", NAMES)
def test_a_finding_is_one_sentence_a_place_and_an_advice(name: str) -> None:
    for finding in diagnose(scene(name)):
        assert "\n" not in finding.what + finding.where + finding.how
        assert finding.where and finding.how
        assert not finding.what.endswith(".")


def test_a_thousand_pods_with_one_trouble_are_one_finding() -> None:
    there = content("too-much-memory")
    pod = of_role(there, "pods", "learner")
    there["pods"] = []
    for index in range(1000):
        one = copy.deepcopy(pod)
        one["metadata"]["name"] = f"demo-1-learner-0-{index}"
        there["pods"].append(one)
    (finding,) = diagnose(observed(there))
    assert finding.where == "pod demo-1-learner-0-0, pod demo-1-learner-0-1, pod demo-1-learner-0-2 and 997 more"


# What these scenes could not show


def unschedulable(message: str) -> str:
    """What is advised for it."""
    there = content("too-much-memory")
    for pod in there["pods"]:
        for one in pod["status"]["conditions"]:
            if one["type"] == "PodScheduled":
                one["message"] = message
    (finding,) = diagnose(observed(there))
    return finding.how


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("3 Insufficient cpu", "launch.kubernetes.learner.cpu"),
        ("3 Insufficient ephemeral-storage", "launch.kubernetes.learner.disk"),
        ("3 node(s) had untolerated taint {nvidia.com/gpu: present}", "launch.kubernetes.learner.tolerations"),
        ("3 node(s) didn't match Pod's node affinity/selector", "launch.kubernetes.learner.node_selector"),
        ("3 node(s) didn't match pod affinity rules", "launch.kubernetes.learner.topology"),
        ("pod has unbound immediate PersistentVolumeClaims", "launch.kubernetes.shared.claim"),
        ("3 node(s) had volume node affinity conflict", "use one of all zones"),
        ("3 Too many pods", "add nodes"),
        ("3 node(s) were unschedulable", "kubectl uncordon"),
        ("something new", "kubectl get nodes"),
    ],
)
def test_what_the_scheduler_says_leads_to_the_setting(reason: str, advice: str) -> None:
    assert advice in unschedulable(
        f"0/3 nodes are available: {reason}. preemption: 0/3 nodes are available: no victims"
    )


def test_what_the_scheduler_cannot_do_about_it_is_left_out() -> None:
    there = content("too-much-memory")
    (finding,) = diagnose(observed(there))
    assert finding.what.endswith("had untolerated taint(s)")


def pull(reason: str, message: str, event: str = "") -> tuple[str, str]:
    there = content("image-not-there")
    status = of_role(there, "pods", "learner")["status"]["containerStatuses"][0]
    status["state"] = {"waiting": {"reason": reason, "message": message}}
    there["events"] = []
    if event:
        name = of_role(there, "pods", "learner")["metadata"]["name"]
        there["events"] = [{"reason": "Failed", "message": event, "involvedObject": {"name": name}}]
    (finding,) = diagnose(observed(there))
    return finding.what, finding.how


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("failed to authorize: 401 Unauthorized", "launch.kubernetes.pull_secrets"),
        (
            "pull access denied, repository does not exist or may require authorization",
            "launch.kubernetes.pull_secrets",
        ),
        ("manifest unknown", "launch.kubernetes.images.learner: was it pushed?"),
        ("no match for platform in manifest", "the nodes' architecture"),
        ("dial tcp: lookup registry: no such host", "cannot reach the registry"),
        ("toomanyrequests: rate limit", "limits its requests"),
        ("no space left on device", "disk is full"),
        ('couldn\'t parse image name "A:B:C"', "correct launch.kubernetes.images.learner"),
    ],
)
def test_why_an_image_is_not_pulled_leads_to_what_to_do(message: str, advice: str) -> None:
    what, how = pull("ErrImagePull", message)
    assert message in what
    assert advice in how


def test_a_back_off_says_what_it_backs_off_from() -> None:
    what, how = pull("ImagePullBackOff", 'Back-off pulling image "x@sha256:0"', "Failed to pull image: 403 Forbidden")
    assert what.endswith("Failed to pull image: 403 Forbidden")
    assert "pull_secrets" in how
    assert pull("ImagePullBackOff", 'Back-off pulling image "x@sha256:0"')[0].endswith('"x@sha256:0"')


def test_the_image_that_fetches_is_the_learners() -> None:
    there = content("fetching")
    there["pods"] = [of_role(there, "pods", "learner")]
    status = there["pods"][0]["status"]["initContainerStatuses"][0]
    status["state"] = {"waiting": {"reason": "InvalidImageName", "message": "x"}}
    (finding,) = diagnose(observed(there))
    assert "launch.kubernetes.images.learner" in finding.how


def evicted(message: str) -> str:
    there = content("disk-evicted")
    of_role(there, "pods", "learner")["status"]["message"] = message
    (finding,) = diagnose(observed(there))
    return finding.how


def test_why_a_pod_was_evicted_leads_to_what_to_do() -> None:
    assert "launch.kubernetes.learner.memory" in evicted("The node was low on resource: memory. Threshold: 100Mi")
    assert "launch.kubernetes.learner.disk" in evicted("The node was low on resource: ephemeral-storage")
    assert "launch.kubernetes.learner.disk" in evicted('Usage of EmptyDir volume "tmp" exceeds the limit "4Gi"')
    assert "launch.kubernetes.learner.shm" in evicted('Usage of EmptyDir volume "shm" exceeds the limit "1Gi"')
    assert "nothing has to be done" in evicted("The node was low on resource: pids")


def test_a_node_that_confirmed_the_end_of_its_pods_needs_no_action() -> None:
    there = content("node-lost")
    for pod in there["pods"]:
        if "learner" in pod["metadata"]["name"]:
            pod["status"]["phase"] = "Failed"
    (finding,) = diagnose(observed(there))
    assert finding.how.startswith("nothing has to be done")


def test_a_volume_that_one_node_has_says_that_many_must() -> None:
    there = content("volume-secret-missing")
    for event in there["events"]:
        if event["reason"] == "FailedMount":
            event.update(reason="FailedAttachVolume", message='Multi-Attach error for volume "pvc-1"')
    (finding,) = diagnose(observed(there))
    assert "must be ReadWriteMany" in finding.how


def test_problems_that_are_over_are_not_reported() -> None:
    """Events stay for an hour; what they report may be fixed."""
    there = content("volume-secret-missing")
    for pod in there["pods"]:
        pod["status"].update(phase="Running", containerStatuses=[{"name": "learner", "state": {"running": {}}}])
    assert diagnose(observed(there)) == []
    there = content("quota")
    of_role(there, "jobs", "learner")["status"]["active"] = 2
    assert diagnose(observed(there)) == []
    there = content("liveness")
    for pod in there["pods"]:
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pod["status"]["containerStatuses"][0]["state"] = {"running": {}}
        pod["status"]["containerStatuses"][0].pop("lastState", None)
    assert diagnose(observed(there)) == []


def test_a_server_that_still_loads_its_model_is_no_trouble() -> None:
    there = content("startup")
    there["pods"] = [pod for pod in there["pods"] if pod["status"]["phase"] == "Running"]
    assert diagnose(observed(there)) == []


@pytest.mark.parametrize("code", [0, 3, 75, 143])
def test_an_end_that_is_no_fault_is_not_reported(code: int) -> None:
    there = content("crashes")
    for pod in there["pods"]:
        pod["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": code, "reason": "Error"}}
    assert diagnose(observed(there)) == []


def test_the_termination_message_of_our_container_is_reported_as_text() -> None:
    there = content("crashes")
    for pod in there["pods"]:
        words = written(StageStatus(2, "no rights\n  where: s3://b\n  fix:   ask for them")).decode()
        state = {"terminated": {"exitCode": 2, "message": words}}
        pod["status"]["containerStatuses"][0]["state"] = state
    found = diagnose(observed(there))
    assert found and all(one.what.endswith(": no rights | where: s3://b | fix: ask for them") for one in found)


def test_a_long_message_is_cut_and_an_endless_log_is_its_end() -> None:
    there = content("crashes")
    for pod in there["pods"]:
        state: dict[str, Any] = {"exitCode": 1, "message": "\n".join(f"line {i}" for i in range(80))}
        pod["status"]["containerStatuses"][0]["state"] = {"terminated": state}
    found = diagnose(observed(there))
    assert all(one.what.endswith(": line 76 | line 77 | line 78 | line 79") for one in found)
    for pod in there["pods"]:
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = "x" * 5000
    assert max(len(one.what) for one in diagnose(observed(there))) < 800
