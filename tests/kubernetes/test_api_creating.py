"""A JobSet is created once, whatever becomes of the answers, and never half-heartedly."""

from __future__ import annotations

from typing import Any

import pytest

from components.launch.kubernetes.api import Cluster, Exists, Refused, Unreachable
from tests.kubernetes.fake_api import FakeApi, Fault, answers
from tests.kubernetes.objects import jobset

CREATE: Any = {"method": "POST", "path": "/jobsets"}


def test_what_is_created_comes_back_as_the_server_has_it(api: FakeApi, cluster: Cluster) -> None:
    made = cluster.create(jobset())
    assert made["metadata"]["uid"] == api.store.objects["jobsets", "evenkeel", "demo-1"]["metadata"]["uid"]
    assert [one.query for one in api.seen] == [{"fieldValidation": "Strict"}]


def test_a_dry_run_changes_nothing_and_refuses_unknown_fields(api: FakeApi, cluster: Cluster) -> None:
    cluster.dry_run(jobset())
    assert api.store.objects == {}
    assert [one.query for one in api.seen] == [{"dryRun": "All", "fieldValidation": "Strict"}]


@pytest.mark.parametrize("kind", ["lost", "truncated"])
def test_a_creation_whose_answer_is_lost_is_found_and_not_made_again(api: FakeApi, cluster: Cluster, kind: str) -> None:
    api.faults.add(Fault(kind, **CREATE))  # type: ignore[arg-type]
    made = cluster.create(jobset())
    assert made["metadata"]["uid"]
    assert api.count("create", "jobsets") == 1


def test_a_creation_that_was_never_made_is_made_after_looking(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("dropped", **CREATE))
    assert cluster.create(jobset())["metadata"]["uid"]
    assert [one.verb for one in api.seen] == ["get", "create"]  # what was dropped was never understood


def test_a_slow_creation_that_was_given_up_is_found_when_it_is_there(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("slow", seconds=5, **CREATE))
    cluster.create(jobset())
    assert api.count("create", "jobsets") == 1


@pytest.mark.parametrize("code", [500, 502, 503, 504])
def test_a_server_that_fails_is_asked_again_only_after_looking(api: FakeApi, cluster: Cluster, code: int) -> None:
    failed = answers.status(code, "InternalError", "etcdserver: request timed out")
    api.faults.add(Fault("status", body=failed, **CREATE))
    cluster.create(jobset())
    assert [one.verb for one in api.seen] == ["get", "create"]


def test_a_request_that_arrives_late_is_taken_for_ours(api: FakeApi, cluster: Cluster) -> None:
    """The look finds nothing, and the second request that it is there."""
    late = Fault("status", body=answers.exists("jobsets", "demo-1"), meanwhile=lambda: api.put("jobsets", jobset()))
    late.method, late.path = "POST", "/jobsets"
    api.faults.add(Fault("dropped", **CREATE), late)
    made = cluster.create(jobset())
    assert made == api.store.get(("jobsets", "evenkeel", "demo-1"))


def test_another_object_of_the_name_is_not_taken_for_ours(api: FakeApi, cluster: Cluster) -> None:
    api.put("jobsets", jobset(spec="other"))
    with pytest.raises(Exists, match="JobSet demo-1 is there already"):
        cluster.create(jobset())
    api.faults.add(Fault("dropped", **CREATE))
    with pytest.raises(Exists):
        cluster.create(jobset())
    assert len(api.store.objects) == 1


def test_one_that_was_there_before_is_not_taken_for_created(api: FakeApi, cluster: Cluster) -> None:
    api.put("jobsets", jobset())
    with pytest.raises(Exists):
        cluster.create(jobset())


def test_one_that_is_being_deleted_is_not_taken_for_ours(api: FakeApi, cluster: Cluster) -> None:
    api.put("jobsets", jobset(deletionTimestamp="2026-01-01T00:00:00Z"))
    api.faults.add(Fault("dropped", **CREATE), Fault("status", body=answers.BEING_DELETED, **CREATE))
    with pytest.raises(Exists, match="JobSet demo-1 is still being deleted") as caught:
        cluster.create(jobset())
    assert "kubectl -n evenkeel get jobsets demo-1 --watch" in (caught.value.how or "")


def test_too_many_requests_are_waited_out_because_nothing_was_done(api: FakeApi, cluster: Cluster) -> None:
    busy = answers.status(429, "TooManyRequests", "slow down")
    api.faults.add(Fault("status", body=busy, headers={"Retry-After": "0"}, times=2, **CREATE))
    cluster.create(jobset())
    assert [one.verb for one in api.seen] == ["create"]  # and nobody had to look


def test_a_race_at_a_quota_is_run_again(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("status", body=answers.CONTENDED, **CREATE))
    cluster.create(jobset())
    assert [one.verb for one in api.seen] == ["create"]


def test_a_race_that_is_lost_every_time_is_told(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("status", body=answers.CONTENDED, times=100, **CREATE))
    with pytest.raises(Refused, match="something else changes JobSet demo-1 all the time"):
        cluster.create(jobset())


def test_when_the_server_stays_away_it_is_said_that_nobody_knows(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("lost", **CREATE), Fault("dropped", times=100))
    with pytest.raises(Unreachable, match="whether JobSet demo-1 was created is not known") as caught:
        cluster.create(jobset())
    assert "kubectl -n evenkeel get jobsets demo-1" in (caught.value.how or "")


def test_one_that_was_not_there_at_the_last_look_may_still_come(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("dropped", times=100, **CREATE))
    with pytest.raises(Unreachable, match="whether JobSet demo-1 was created is not known"):
        cluster.create(jobset())


def test_when_it_is_known_that_nothing_was_created_nothing_else_is_said(api: FakeApi, cluster: Cluster) -> None:
    api.stop()
    with pytest.raises(Unreachable) as caught:
        cluster.create(jobset())
    assert "not known" not in caught.value.what


def test_a_webhook_that_is_silent_is_waited_for_and_then_named(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("status", body=answers.WEBHOOK_SILENT, **CREATE))
    cluster.create(jobset("demo-2"))
    api.faults.add(Fault("status", body=answers.WEBHOOK_SILENT, times=100, **CREATE))
    with pytest.raises(Unreachable, match=r'failed calling webhook "mjobset\.kb\.io"') as caught:
        cluster.create(jobset())
    assert "kubectl -n jobset-system get pods" in (caught.value.how or "")


def test_a_refusal_is_not_tried_again(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("status", body=answers.INVALID, **CREATE))
    with pytest.raises(Refused):
        cluster.create(jobset())
    assert len(api.requests) == 1
