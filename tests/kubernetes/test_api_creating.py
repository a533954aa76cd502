"""A JobSet is created once, even if responses are lost; if the result is unknown, the error says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.launch.kubernetes.api import Cluster, Exists, Refused, Unreachable
from tests.kubernetes.fake_api import FakeApi, Fault, answers
from tests.kubernetes.objects import jobset

CREATE: Any = {"method": "POST", "path": "/jobsets"}
UNSURE, FAILED = (500, 502, 503, 504), "etcdserver: request timed out"


def test_what_is_created_comes_back_as_the_server_has_it(api: FakeApi, cluster: Cluster) -> None:
    made = cluster.create(jobset())
    assert made["metadata"]["uid"] == api.store.objects["jobsets", "evenkeel", "demo-1"]["metadata"]["uid"]
    assert [one.query for one in api.seen] == [{"fieldValidation": "Strict"}]


def test_a_dry_run_changes_nothing_and_refuses_unknown_fields(api: FakeApi, cluster: Cluster) -> None:
    cluster.dry_run(jobset())
    assert api.store.objects == {}
    assert [one.query for one in api.seen] == [{"dryRun": "All", "fieldValidation": "Strict"}]


@pytest.mark.parametrize(
    "fault", [Fault("lost"), Fault("truncated"), Fault("slow", seconds=5)], ids=lambda one: one.kind
)
def test_a_creation_whose_answer_is_lost_is_found_and_not_made_again(
    api: FakeApi, cluster: Cluster, fault: Fault
) -> None:
    api.faults.add(replace(fault, **CREATE))
    assert cluster.create(jobset())["metadata"]["uid"]
    assert api.count("create", "jobsets") == 1


@pytest.mark.parametrize(
    ("fault", "made"),
    [
        (Fault("dropped"), ["get", "create"]),  # what was dropped was never understood
        *((Fault("status", body=answers.status(code, "InternalError", FAILED)), ["get", "create"]) for code in UNSURE),
        # Nothing was done, and the outcome is known: too many requests, a race at a quota.
        (Fault("status", body=answers.BUSY, headers={"Retry-After": "0.1"}, times=2), ["create"]),
        (Fault("status", body=answers.CONTENDED), ["create"]),
    ],
    ids=["dropped", *map(str, UNSURE), "busy", "contended"],
)
def test_a_creation_that_may_not_have_been_made_is_made_after_looking(
    api: FakeApi, cluster: Cluster, fault: Fault, made: list[str]
) -> None:
    api.faults.add(replace(fault, **CREATE))
    assert cluster.create(jobset())["metadata"]["uid"]
    assert [one.verb for one in api.seen] == made


def test_a_request_that_arrives_late_is_taken_for_ours(api: FakeApi, cluster: Cluster) -> None:
    """The look finds nothing, and the second request that it is there."""
    late = Fault("status", body=answers.exists("jobsets", "demo-1"), meanwhile=lambda: api.put("jobsets", jobset()))
    late.method, late.path = "POST", "/jobsets"
    api.faults.add(Fault("dropped", **CREATE), late)
    made = cluster.create(jobset())
    assert made == api.store.get(("jobsets", "evenkeel", "demo-1"))


def test_another_object_of_the_name_is_not_taken_for_ours(api: FakeApi, cluster: Cluster) -> None:
    api.put("jobsets", jobset())  # one that was there before has not been created now
    with pytest.raises(Exists, match="JobSet demo-1 is there already"):
        cluster.create(jobset())
    api.put("jobsets", jobset(spec="other"))
    api.faults.add(Fault("dropped", **CREATE))
    with pytest.raises(Exists):
        cluster.create(jobset())
    assert len(api.store.objects) == 1


def test_one_that_is_being_deleted_is_not_taken_for_ours(api: FakeApi, cluster: Cluster) -> None:
    api.put("jobsets", jobset(deletionTimestamp="2026-01-01T00:00:00Z"))
    api.faults.add(Fault("dropped", **CREATE), Fault("status", body=answers.BEING_DELETED, **CREATE))
    with pytest.raises(Exists, match="JobSet demo-1 is still being deleted") as caught:
        cluster.create(jobset())
    assert "kubectl -n evenkeel get jobsets demo-1 --watch" in (caught.value.how or "")


def test_a_race_that_is_lost_every_time_is_reported(api: FakeApi, cluster: Cluster) -> None:
    api.faults.add(Fault("status", body=answers.CONTENDED, times=100, **CREATE))
    with pytest.raises(Refused, match="something else changes JobSet demo-1 all the time"):
        cluster.create(jobset())


@pytest.mark.parametrize(
    "faults",
    [[Fault("lost", **CREATE), Fault("dropped", times=100)], [Fault("dropped", times=100, **CREATE)]],
    ids=["away", "not there at the last look"],
)
def test_if_the_server_stays_unreachable_the_result_is_reported_as_unknown(
    api: FakeApi, cluster: Cluster, faults: list[Fault]
) -> None:
    """One that was not there at the last look may still come."""
    api.faults.add(*map(replace, faults))
    with pytest.raises(Unreachable, match="whether JobSet demo-1 was created is not known") as caught:
        cluster.create(jobset())
    assert "kubectl -n evenkeel get jobsets demo-1" in (caught.value.how or "")


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
