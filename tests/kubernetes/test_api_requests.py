"""What only looks is asked again, in time and not for ever; what was listed is whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from components.launch.kubernetes.api import Cluster, Refused, Unreachable
from components.launch.kubernetes.api import requests as module
from tests.kubernetes.conftest import QUICK
from tests.kubernetes.fake_api import FakeApi, Fault, answers
from tests.kubernetes.objects import jobset, pod

LIST = {"method": "GET", "path": "/pods"}
RUN = "evenkeel/run=demo-1"


@pytest.fixture
def pods(api: FakeApi) -> set[str]:
    """A thousand and one."""
    names = {f"demo-1-learner-0-{index}" for index in range(1001)}
    for name in names:
        api.put("pods", pod(name, **{"evenkeel/run": "demo-1"}))
    api.put("pods", pod("somebody-elses"))
    return names


def found(cluster: Cluster) -> set[str]:
    return {one["metadata"]["name"] for one in cluster.pods(RUN)}


def test_a_long_list_comes_in_pages(api: FakeApi, cluster: Cluster, pods: set[str]) -> None:
    assert found(cluster) == pods
    assert [one.query["limit"] for one in api.seen] == ["500"] * 3


def test_a_list_whose_next_page_has_expired_restarts(api: FakeApi, cluster: Cluster, pods: set[str]) -> None:
    api.faults.add(Fault("status", method="GET", path="continue=", body=answers.EXPIRED))
    assert found(cluster) == pods
    assert len(api.requests) == 2 + 3


def test_a_list_that_is_always_too_late_is_given_up(api: FakeApi, cluster: Cluster, pods: set[str]) -> None:
    api.faults.add(Fault("status", method="GET", path="continue=", body=answers.EXPIRED, times=100))
    with pytest.raises(Refused, match="too old to display a consistent list"):
        cluster.pods(RUN)
    assert len(api.requests) == 2 * module.LISTS


@pytest.mark.parametrize(
    "fault",
    [
        Fault("dropped"),
        Fault("lost"),
        Fault("truncated"),
        Fault("text"),
        Fault("text", body={"code": 502}),
        Fault("status", body=answers.status(500, "InternalError", "etcdserver: leader changed")),
        Fault("status", body=answers.status(503, "ServiceUnavailable", "apiserver is shutting down")),
        Fault("status", body={**answers.BUSY, "details": {}}),
    ],
    ids=lambda fault: f"{fault.kind}{fault.body.get('code', '')}",
)
def test_what_only_looks_is_asked_again(api: FakeApi, cluster: Cluster, pods: set[str], fault: Fault) -> None:
    api.faults.add(replace(fault, times=2, **LIST))
    assert found(cluster) == pods
    assert api.faults.left == 0


def test_an_answer_that_takes_too_long_is_asked_for_again(api: FakeApi, cluster: Cluster) -> None:
    api.put("pods", pod("demo-1-learner-0-0", **{"evenkeel/run": "demo-1"}))
    api.faults.add(Fault("slow", seconds=10, **LIST))
    assert found(cluster) == {"demo-1-learner-0-0"}


def test_an_answer_that_trickles_in_is_not_waited_for_beyond_its_time(api: FakeApi, config: object) -> None:
    """Every byte comes in time, and the whole would take a minute."""
    cluster = Cluster.connect("evenkeel", patience=replace(QUICK, timeout=0.5))
    api.put("pods", pod("demo-1-learner-0-0", **{"evenkeel/run": "demo-1"}))
    api.faults.add(Fault("trickle", seconds=0.2, **LIST))
    api.requests.clear()
    assert found(cluster) == {"demo-1-learner-0-0"}
    assert len(api.requests) == 2


def test_what_fails_every_time_is_given_up_after_so_many_attempts(api: FakeApi, cluster: Cluster) -> None:
    failed = answers.status(500, "InternalError", "etcdserver: no leader")
    api.faults.add(Fault("status", body=failed, times=100, **LIST))
    with pytest.raises(Unreachable, match=r"fails: etcdserver: no leader \(status 500\)") as caught:
        cluster.pods(RUN)
    assert len(api.requests) == QUICK.attempts
    assert "kubectl get --raw /readyz" in (caught.value.how or "")


def test_what_a_busy_server_asks_for_is_waited(api: FakeApi, config: object) -> None:
    waited: list[float] = []
    cluster = Cluster.connect("evenkeel", patience=replace(QUICK, sleep=waited.append))
    for headers, body in (({"Retry-After": "7"}, answers.status(429, "TooManyRequests", "")), ({}, answers.BUSY)):
        api.faults.add(Fault("status", body=body, headers=headers, **LIST))
    cluster.pods(RUN)
    first, second = waited
    assert 7 <= first <= 7 + QUICK.longest_pause
    assert 1 <= second <= 1 + QUICK.longest_pause  # it may say so in the Status as well


def test_a_server_that_asks_for_more_time_than_there_is_is_not_waited_for(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("status", body=answers.BUSY, headers={"Retry-After": "3600"}, **LIST))
    with pytest.raises(Unreachable, match="is busy"):
        cluster.pods(RUN)
    assert len(api.requests) == 1


def test_pauses_grow_and_differ_from_client_to_client(api: FakeApi, config: object) -> None:
    waited: list[float] = []
    patience = replace(QUICK, attempts=8, first_pause=1.0, longest_pause=8.0, deadline=1e9, sleep=waited.append)
    cluster = Cluster.connect("evenkeel", patience=patience)
    api.faults.add(Fault("dropped", times=7, **LIST))
    cluster.pods(RUN)
    assert all(0 <= pause <= limit for pause, limit in zip(waited, [1, 2, 4, 8, 8, 8, 8], strict=True))
    assert len(set(waited)) == 7


def test_a_server_that_is_restarted_is_not_missed(api: FakeApi, cluster: Cluster, pods: set[str]) -> None:
    assert found(cluster) == pods
    api.stop()
    with pytest.raises(Unreachable, match="connection refused") as caught:
        cluster.pods(RUN)
    assert str(caught.value.where) == api.url
    api.start()
    assert found(cluster) == pods


def test_an_object_that_is_not_there_is_none(cluster: Cluster) -> None:
    assert cluster.jobset("demo-1") is None


def test_no_object_is_one_thing_and_no_such_kind_another(api: FakeApi, cluster: Cluster) -> None:
    del api.served["jobset.x-k8s.io"]
    with pytest.raises(Refused, match="JobSet is not installed"):
        cluster.jobset("demo-1")


# Deletion


def test_a_deletion_takes_all_that_belongs_to_it_and_only_the_object_that_is_meant(
    api: FakeApi, cluster: Cluster
) -> None:
    uid = api.put("jobsets", jobset())["metadata"]["uid"]
    cluster.delete_jobset("demo-1", "another-uid")
    assert ("jobsets", "evenkeel", "demo-1") in api.store.objects
    cluster.delete_jobset("demo-1", uid)
    assert api.store.objects == {}
    assert {(one.body["propagationPolicy"], one.body["preconditions"]["uid"]) for one in api.seen} == {
        ("Foreground", "another-uid"),
        ("Foreground", uid),
    }


def test_a_deletion_whose_answer_is_lost_is_done(api: FakeApi, cluster: Cluster) -> None:
    uid = api.put("jobsets", jobset())["metadata"]["uid"]
    api.faults.add(Fault("lost", method="DELETE"))
    cluster.delete_jobset("demo-1", uid)
    assert api.store.objects == {}


def test_what_is_gone_need_not_be_deleted(cluster: Cluster) -> None:
    cluster.delete_jobset("demo-1", "some-uid")


# Logs


def test_a_log_comes_line_by_line_with_its_last_line_whole_or_not(api: FakeApi, cluster: Cluster) -> None:
    api.logs["demo-1-learner-0-0", "learner"] = "step 1\n\nstep 2 – gut\nstep 3"
    assert list(cluster.log("demo-1-learner-0-0", "learner")) == ["step 1", "", "step 2 – gut", "step 3"]


def test_a_log_is_asked_for_as_the_server_knows_it(api: FakeApi, cluster: Cluster) -> None:
    api.logs["demo-1-learner-0-0", "learner"] = "x\n"
    since = datetime(2026, 11, 22, 18, 30, 5, 700000, tzinfo=UTC)
    list(cluster.log("demo-1-learner-0-0", "learner", since=since, timestamps=True, follow=True))
    assert api.seen[0].query == {
        "container": "learner",
        "timestamps": "true",
        "follow": "true",
        "sinceTime": "2026-11-22T18:30:05Z",
    }


def test_a_container_that_has_not_begun_and_a_pod_that_is_gone_have_no_log(api: FakeApi, cluster: Cluster) -> None:
    api.logs["demo-1-learner-0-0", "learner"] = ""
    assert list(cluster.log("demo-1-learner-0-0", "learner")) == []
    assert list(cluster.log("gone", "learner")) == []


def test_a_log_that_breaks_off_says_so_after_its_lines(api: FakeApi, cluster: Cluster) -> None:
    api.logs["demo-1-learner-0-0", "learner"] = "".join(f"step {step}\n" for step in range(10000))
    api.faults.add(Fault("truncated", path="/log"))
    read = []
    with pytest.raises(Unreachable):
        for line in cluster.log("demo-1-learner-0-0", "learner"):
            read.append(line)
    assert read == [f"step {step}" for step in range(len(read))]


# Credentials


def test_a_token_that_was_renewed_in_the_file_is_taken_up(api: FakeApi, cluster: Cluster, config: object) -> None:
    api.put("jobsets", jobset())
    api.tokens = {"new"}
    from tests.kubernetes.fake_api import kubeconfig

    kubeconfig(config, api.url, {"token": "new"})  # type: ignore[arg-type]
    assert cluster.jobset("demo-1") is not None
    api.tokens = {"newer"}
    kubeconfig(config, api.url, {"token": "newer"})  # type: ignore[arg-type]
    cluster.create(jobset("demo-2"))
    assert api.count("create", "jobsets") == 1


def test_an_expired_token_is_reported_and_not_retried_forever(api: FakeApi, cluster: Cluster) -> None:
    api.tokens = set()
    with pytest.raises(Refused, match="does not accept the credentials of context 'test'") as caught:
        cluster.jobset("demo-1")
    assert len(api.requests) == 2
    assert "kubectl auth whoami" in (caught.value.how or "")
