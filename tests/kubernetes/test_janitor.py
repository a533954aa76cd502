"""JobSets that no process waits for are deleted; what is alive, unknown or of another owner stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from components.launch.kubernetes import manifests
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.janitor import LATE, decide, last_moment, sweep
from tests.kubernetes.fake_api import FakeApi, Fault, answers
from tests.kubernetes.objects import jobset
from tests.kubernetes.profiles import plan

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HERE = "/shared/project/runs/dead"
ALIVE: dict[str, bool | None] = {"living": True, "dead": False, "elsewhere": None}


def timestamp(delta: timedelta) -> str:
    return f"{NOW + delta:%Y-%m-%dT%H:%M:%SZ}"


def one(run: str = "dead", **changes: Any) -> dict[str, Any]:
    """A JobSet of a run that is at work, for one more hour."""
    found = jobset(run, uid=f"uid-of-{run}")
    found["metadata"]["annotations"]["evenkeel/deadline"] = timestamp(timedelta(hours=1))
    found["metadata"]["annotations"]["evenkeel/workspace"] = HERE
    found["metadata"].update(changes)
    return found


def ended(found: dict[str, Any], ago: timedelta, kind: str = "Completed", ttl: int | None = 3600) -> dict[str, Any]:
    condition = {"type": kind, "status": "True", "lastTransitionTime": timestamp(-ago)}
    found["status"] = {"conditions": [condition]}
    if ttl is not None:
        found["spec"]["ttlSecondsAfterFinished"] = ttl
    return found


def alive(run: str, workspace: str) -> bool | None:
    assert workspace == HERE
    return ALIVE.get(run)


def why(found: dict[str, Any]) -> str:
    """Why it is removed; empty where it is not."""
    removals = decide([found], alive, NOW)
    assert all(removal.uid == found["metadata"]["uid"] for removal in removals)
    return removals[0].why if removals else ""


@pytest.mark.parametrize(("run", "goes"), [("dead", True), ("living", False), ("elsewhere", False), ("unheard", False)])
def test_one_that_runs_goes_only_when_its_flow_run_is_known_to_be_over(run: str, goes: bool) -> None:
    assert ("the flow run that waited for" in why(one(run))) is goes


def test_one_that_does_not_say_where_it_was_submitted_is_nobodys_to_judge() -> None:
    found = one("dead")
    del found["metadata"]["annotations"]["evenkeel/workspace"]
    assert why(found) == ""


def test_one_past_its_deadline_goes_whoever_waits() -> None:
    found = one("living")
    assert why(found) == ""
    found["metadata"]["annotations"]["evenkeel/deadline"] = timestamp(-timedelta(minutes=1))
    assert why(found) == "its deadline was 2026-11-22 11:59"


@pytest.mark.parametrize("kind", ["Completed", "Failed"])
def test_one_that_has_ended_stays_for_its_time_and_a_little(kind: str) -> None:
    limit = timedelta(hours=1) + LATE
    assert why(ended(one(), limit - timedelta(seconds=1), kind)) == ""
    assert why(ended(one(), limit, kind)) == "it ended at 2026-11-22 10:50, and was to stay 3600 s"


def test_one_that_has_ended_and_has_no_time_stays_for_ever() -> None:
    assert why(ended(one(), timedelta(days=1000), ttl=None)) == ""


def test_one_that_has_ended_is_not_removed_because_its_flow_run_has() -> None:
    assert why(ended(one("dead"), timedelta(minutes=5))) == ""


@pytest.mark.parametrize("label", ["app.kubernetes.io/name", "app.kubernetes.io/managed-by"])
def test_what_is_not_ours_stays_whatever_it_looks_like(label: str) -> None:
    found = one("dead")
    for value in ("somebody", None):
        found["metadata"]["labels"][label] = value
        assert why(found) == ""
    del found["metadata"]["labels"]
    assert why(found) == ""


def test_what_goes_already_is_left_alone() -> None:
    assert why(one("dead", deletionTimestamp=timestamp(-timedelta(hours=1)))) == ""


def test_times_that_are_none_decide_nothing() -> None:
    found = one("elsewhere")
    found["metadata"]["annotations"]["evenkeel/deadline"] = "tomorrow"
    assert why(found) == ""
    del found["metadata"]["annotations"]
    assert why(found) == ""
    found = ended(one(), timedelta(days=9))
    found["status"]["conditions"][0]["lastTransitionTime"] = None
    assert why(found) == ""


# When a run must be over, for whoever waits for it and for the janitor


MADE = datetime(2026, 1, 1, tzinfo=UTC)
"""When the profiles were submitted."""
ATTEMPT = timedelta(seconds=7200 + 300)
LAST = MADE + 4 * ATTEMPT + timedelta(minutes=10)


def attempted(**status: Any) -> dict[str, Any]:
    """A run whose attempts may take two hours, with three restarts and a grace of five minutes."""
    found = manifests.jobset(plan("cpu"))
    found["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "u"}
    return {**found, "status": status}


def test_all_attempts_have_their_time_and_the_cluster_its_own() -> None:
    """It ends an attempt at its deadline, and says so: no other process may be quicker."""
    assert last_moment(attempted()) == LAST
    assert last_moment(attempted(restarts=3, restartsCountTowardsMax=3)) == LAST


def test_a_disruption_takes_no_time_from_the_other_attempts() -> None:
    assert last_moment(attempted(restarts=3, restartsCountTowardsMax=1)) == LAST + 2 * ATTEMPT


def test_waiting_in_a_queue_is_no_attempt() -> None:
    held = attempted()
    held["spec"]["suspend"] = True
    assert last_moment(held) is None
    resumed = {"type": "Suspended", "status": "False", "lastTransitionTime": "2026-01-03T06:00:00Z"}
    assert last_moment(attempted(conditions=[resumed])) == LAST + timedelta(days=2, hours=6)


def test_the_janitor_leaves_a_run_that_waits_or_was_disrupted() -> None:
    held, disrupted = attempted(), attempted(restarts=1, restartsCountTowardsMax=0)
    held["spec"]["suspend"] = True
    late = LAST + timedelta(seconds=1)
    assert decide([held, disrupted], lambda run, workspace: None, late) == []
    assert [removal.name for removal in decide([attempted()], lambda run, workspace: None, late)] == ["arithmetic-1"]


def test_a_jobset_without_a_deadline_has_no_last_moment() -> None:
    assert last_moment({"metadata": {"name": "x"}, "spec": {}}) is None


# On a cluster


def swept(cluster: Cluster) -> list[str]:
    return [removal.name for removal in sweep(cluster, alive, NOW)]


def test_only_what_is_to_go_is_deleted_and_reported(api: FakeApi, cluster: Cluster) -> None:
    for run in ("dead", "living", "elsewhere"):
        api.put("jobsets", one(run))
    somebodys = one("dead", name="somebodys", uid="x")
    somebodys["metadata"]["labels"] = {"evenkeel/run": "dead"}
    api.put("jobsets", somebodys)
    assert swept(cluster) == ["dead"]
    assert {name for _, _, name in api.store.objects} == {"living", "elsewhere", "somebodys"}
    assert api.seen[0].query["labelSelector"] == "app.kubernetes.io/name=evenkeel,app.kubernetes.io/managed-by=evenkeel"


def test_one_that_was_submitted_again_meanwhile_stays(api: FakeApi, cluster: Cluster) -> None:
    api.put("jobsets", one("dead"))

    def over(run: str, workspace: str) -> bool:
        api.store.remove(("jobsets", "evenkeel", "dead"))
        api.put("jobsets", one("dead", uid="another"))
        return False

    list(sweep(cluster, over, NOW))
    assert ("jobsets", "evenkeel", "dead") in api.store.objects


def test_whether_a_run_is_alive_is_asked_after_the_jobsets_were_listed(api: FakeApi, cluster: Cluster) -> None:
    """Or one that began in between would be taken for one that is over."""
    api.put("jobsets", one("dead"))
    asked: list[int] = []

    def living(run: str, workspace: str) -> bool:
        asked.append(api.count("list", "jobsets"))
        return True

    assert list(sweep(cluster, living, NOW)) == []
    assert asked == [1]


def test_a_refusal_is_reported(api: FakeApi, cluster: Cluster) -> None:
    api.put("jobsets", one("dead"))
    api.faults.add(Fault("status", method="DELETE", body=answers.forbidden("delete", "jobsets", "x", "evenkeel")))
    with pytest.raises(Exception, match="may not delete jobsets in namespace evenkeel"):
        swept(cluster)
