"""One pure function says how a run is; every scene comes from a real cluster, see `scenes`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from components.launch.kubernetes.diagnosis import diagnose
from components.launch.kubernetes.observed import Observed
from components.launch.kubernetes.status import status_of
from components.pods.ending import termination_message
from components.status import StageStatus
from tests.kubernetes.scenes import NAMES, content, observed, of_role, scene

TABLE: dict[str, tuple[str, int | None, str]] = {
    "account-missing": ("pending", None, "0 of 1 pods run"),
    "again-after-disruption": ("running", None, "2 of 2 pods run, attempt 2, because again-learner-0 was disrupted"),
    "again-after-failure": ("running", None, "2 of 2 pods run, attempt 2, because counted-learner-0 failed"),
    "answer-is-no": ("failed", 3, "learner ended with exit code 3 (everything worked and the answer is no)"),
    "bad-input": (
        "failed",
        2,
        "learner ended with exit code 2 (its input or its settings are wrong): the setting x is wrong",
    ),
    "being-deleted": ("running", None, "the JobSet deleting is being deleted"),
    "claim-missing": ("pending", None, "0 of 1 pods run"),
    "command-missing": (
        "failed",
        1,
        "learner ended with exit code 128; launch.kubernetes.max_restarts allows no restart",
    ),
    "crashes": (
        "failed",
        1,
        "learner ended with exit code 1: boom; "
        "it was restarted 1 time, as often as launch.kubernetes.max_restarts allows",
    ),
    "deadline": ("failed", 1, "learner failed: Job was active longer than specified deadline"),
    "disk-evicted": (
        "failed",
        1,
        "learner failed: Job has reached the specified backoff limit; launch.kubernetes.max_restarts allows no restart",
    ),
    "drained": ("running", None, "2 of 2 pods run"),
    "fetch-bad-input": (
        "failed",
        2,
        "fetch of learner ended with exit code 2 (its input or its settings are wrong): no such bucket",
    ),
    "fetch-fails": (
        "failed",
        1,
        "fetch of learner ended with exit code 1: server away; launch.kubernetes.max_restarts allows no restart",
    ),
    "fetching": ("pending", None, "0 of 1 pods run"),
    "image-as-root": ("pending", None, "0 of 1 pods run"),
    "image-not-there": ("pending", None, "0 of 1 pods run"),
    "learner-bad-input": (
        "failed",
        2,
        "learner ended with exit code 2 (its input or its settings are wrong): bad code",
    ),
    "liveness": ("running", None, "3 of 3 pods run"),
    "no-controller": ("pending", None, "0 of 1 pods run"),
    "node-lost": ("running", None, "2 of 2 pods run"),
    "out-of-memory": (
        "failed",
        1,
        "learner ended with exit code 137 (it was killed); launch.kubernetes.max_restarts allows no restart",
    ),
    "pod-security": ("pending", None, "0 of 1 pods run"),
    "preempted": ("running", None, "1 of 1 pods run"),
    "priority-class-missing": ("pending", None, "0 of 1 pods run"),
    "queued": ("pending", None, "waits for quota in the queue gpus (kubectl -n evenkeel get workloads)"),
    "quota": ("pending", None, "0 of 2 pods run"),
    "secret-entry-missing": ("pending", None, "0 of 1 pods run"),
    "secret-missing": ("pending", None, "0 of 1 pods run"),
    "startup": ("running", None, "1 of 2 pods run"),
    "succeeded": ("succeeded", 0, ""),
    "too-many-gpus": ("pending", None, "0 of 2 pods run"),
    "too-much-memory": ("pending", None, "0 of 2 pods run"),
    "volume-secret-missing": ("pending", None, "0 of 1 pods run"),
}


def test_every_scene_is_in_the_table() -> None:
    assert sorted(TABLE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_state_exit_code_and_first_line(name: str) -> None:
    found = status_of(scene(name))
    assert (found.state, found.exit_code, found.message.partition("\n")[0]) == TABLE[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_message_goes_on_with_what_is_to_be_done(name: str) -> None:
    there, message = scene(name), status_of(scene(name)).message
    if TABLE[name][0] in ("pending", "running") and name not in ("queued", "being-deleted"):
        assert all(str(finding) in message for finding in diagnose(there))
    elif TABLE[name][0] == "failed" and name != "answer-is-no":
        assert "  fix:   " in message


def test_a_jobset_that_is_gone_has_failed_and_may_be_submitted_again() -> None:
    found = status_of(Observed(None, name="demo-1"))
    assert (found.state, found.exit_code) == ("failed", 75)
    assert "the JobSet demo-1 is gone" in found.message


def test_a_jobset_that_has_just_been_created_is_pending() -> None:
    there = content("no-controller")
    there["jobset"]["status"] = {"restarts": 0}
    assert status_of(observed(there)).state == "pending"


@pytest.mark.parametrize(("state", "word"), [("Completed", "succeeded"), ("Failed", "failed")])
def test_the_terminal_state_alone_says_it_too(state: str, word: str) -> None:
    there = content("fetching")
    there["jobset"]["status"]["terminalState"] = state
    assert status_of(observed(there)).state == word


def test_one_that_ended_before_it_was_deleted_has_ended() -> None:
    there = content("bad-input")
    there["jobset"]["metadata"]["deletionTimestamp"] = "2026-11-22T19:08:04Z"
    assert status_of(observed(there)).exit_code == 2


def test_one_that_is_suspended_without_a_queue_was_suspended_by_somebody() -> None:
    there = content("queued")
    there["jobset"]["metadata"]["labels"] = {}
    message = status_of(observed(there)).message
    assert message.startswith("is suspended by somebody; kubectl -n evenkeel patch jobset held")


def test_the_termination_message_of_our_containers_is_shown_as_text() -> None:
    there, said = content("bad-input"), StageStatus(2, "cannot read: no such file\n  where: data.jsonl")
    pod = of_role(there, "pods", "learner")
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = termination_message(said).decode()
    first = status_of(observed(there)).message.splitlines()[0]
    assert first.endswith("(its input or its settings are wrong): cannot read: no such file | where: data.jsonl")


@pytest.mark.parametrize("message", ['{"exit_code": 2', "[1, 2]", '{"other": 1}', "17"])
def test_a_message_that_only_looks_like_ours_is_shown_unchanged(message: str) -> None:
    there = content("bad-input")
    of_role(there, "pods", "learner")["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = message
    assert message in status_of(observed(there)).message


def test_the_exit_code_is_known_although_the_pod_is_gone() -> None:
    there = content("bad-input")
    there["pods"] = []
    found = status_of(observed(there))
    assert (found.exit_code, found.message) == (
        2,
        "learner ended with exit code 2 (its input or its settings are wrong)",
    )


def test_with_only_the_jobset_its_own_message_is_shown() -> None:
    there = content("crashes")
    there.update(jobs=[], pods=[], events=[])
    found = status_of(observed(there))
    assert found.exit_code == 1
    assert found.message.startswith("the run failed: jobset failed due to reaching max number of restarts")


def ended(pod: dict[str, Any], code: int) -> None:
    status = pod["status"]["containerStatuses"][0]
    status["state"] = {"terminated": {"exitCode": code, "reason": "Error"}}


@pytest.mark.parametrize(("code", "exit_code"), [(75, 75), (143, 75), (1, 1), (137, 1), (139, 1)])
def test_whoever_was_let_down_by_the_cluster_may_be_submitted_again(code: int, exit_code: int) -> None:
    there = content("crashes")
    for pod in there["pods"]:
        ended(pod, code)
    assert status_of(observed(there)).exit_code == exit_code


def test_of_several_that_ended_the_one_that_lost_the_others_is_not_to_blame() -> None:
    there = content("crashes")
    ended(there["pods"][0], 75)
    ended(there["pods"][1], 139)
    found = status_of(observed(there))
    assert found.exit_code == 1
    assert found.message.startswith("learner ended with exit code 139 (it crashed (segmentation fault))")


def test_the_answer_of_the_stage_counts_although_another_pod_failed_first() -> None:
    there = content("crashes")
    ended(of_role(there, "pods", "learner"), 3)
    assert status_of(observed(there)).exit_code == 3


def test_pods_of_the_attempt_before_say_nothing_of_this_one() -> None:
    there = content("again-after-failure")
    old = copy.deepcopy(of_role(there, "pods", "learner"))
    old["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] = "0"
    ended(old, 2)
    there["pods"].append(old)
    assert status_of(observed(there)) == status_of(scene("again-after-failure"))


def without(found: Any, inside: tuple[Any, ...] = ()) -> Iterator[Callable[[Any], None]]:
    """Every way to leave out one entry."""
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in items:

        def remove(root: Any, path: tuple[Any, ...] = (*inside, key)) -> None:
            for step in path[:-1]:
                root = root[step]
            del root[path[-1]]

        if inside:  # a scene always has its parts
            yield remove
        yield from without(value, (*inside, key))


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_server_leaves_out_something_is_said(name: str) -> None:
    """Servers leave out what is empty, and versions differ."""
    for remove in without(content(name)):
        there = content(name)
        remove(there)
        found = status_of(observed(there))
        assert found.state in ("pending", "running", "succeeded", "failed")
        assert (found.exit_code is None) != found.ended
