"""What is gathered of a run is its own, and of its present attempt."""

from __future__ import annotations

from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.observed import Observed, gather, name_of
from tests.kubernetes.fake_api import FakeApi
from tests.kubernetes.objects import jobset, pod

NAME, UID = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid"
ATTEMPT, ROLE = "jobset.sigs.k8s.io/restart-attempt", "jobset.sigs.k8s.io/replicatedjob-name"


def event(about: str, when: str, kind: str = "Warning") -> dict[str, object]:
    """One that names its time as the old API has it."""
    name = f"{about}.{when}".lower().replace(":", "")
    return {"metadata": {"name": name}, "type": kind, "involvedObject": {"name": about}, "lastTimestamp": when}


def test_a_run_that_is_not_there_shows_nothing(cluster: Cluster) -> None:
    assert gather(cluster, "demo-1") == Observed(None, name="demo-1")


def test_objects_of_other_runs_are_left_out(api: FakeApi, cluster: Cluster) -> None:
    uid = api.put("jobsets", jobset())["metadata"]["uid"]
    for plural in ("pods", "jobs"):
        api.put(plural, pod("demo-1-learner-0", **{NAME: "demo-1", UID: uid}))
        api.put(plural, pod("demo-2-learner-0", **{NAME: "demo-2"}))
    found = gather(cluster, "demo-1")
    assert [name_of(one) for one in (*found.jobs, *found.pods)] == ["demo-1-learner-0"] * 2


def test_what_is_left_of_an_earlier_jobset_of_the_name_is_left_out(api: FakeApi, cluster: Cluster) -> None:
    uid = api.put("jobsets", jobset())["metadata"]["uid"]
    api.put("pods", pod("demo-1-learner-0-0-new", **{NAME: "demo-1", UID: uid}))
    api.put("pods", pod("demo-1-learner-0-0-old", **{NAME: "demo-1", UID: "another"}))
    assert [name_of(one) for one in gather(cluster, "demo-1").pods] == ["demo-1-learner-0-0-new"]
    api.store.remove(("jobsets", "evenkeel", "demo-1"))
    assert len(gather(cluster, "demo-1").pods) == 2, "while it goes away, all that is there is shown"


def test_events_are_those_of_the_run_since_it_began_in_their_order(api: FakeApi, cluster: Cluster) -> None:
    api.put("jobsets", jobset(creationTimestamp="2026-11-22T18:00:00Z"))
    mine = ["demo-1", "demo-1-learner-0", "demo-1-learner-0-1-abcde", "demo-1-rollout-0-0-xyz"]
    for minute, about in enumerate(reversed(mine)):
        api.put("events", event(about, f"2026-11-22T18:0{minute}:00Z"))
    for about in ("demo-1-2", "demo-10", "demo-1-2-learner-0-0-abcde", "node-3"):
        api.put("events", event(about, "2026-11-22T18:05:00Z"))
    api.put("events", event("demo-1-learner-0", "2026-11-22T17:59:59Z"))
    api.put("events", event("demo-1-learner-0", "2026-11-22T18:05:00Z", "Normal"))
    found = gather(cluster, "demo-1").events
    assert [one["involvedObject"]["name"] for one in found] == list(reversed(mine))


def test_an_event_in_the_very_second_of_the_beginning_counts(api: FakeApi, cluster: Cluster) -> None:
    """Times with fractions sort before the same second without."""
    api.put("jobsets", jobset(creationTimestamp="2026-11-22T18:00:00Z"))
    new = {"metadata": {"name": "e"}, "type": "Warning", "involvedObject": {"name": "demo-1"}}
    api.put("events", {**new, "lastTimestamp": None, "eventTime": "2026-11-22T18:00:00.123456Z"})
    assert len(gather(cluster, "demo-1").events) == 1


def test_pods_are_distinguished_by_attempt_and_role() -> None:
    both = [(role, attempt) for role in ("learner", "rollout") for attempt in "12"]
    pods = [pod(f"{role}-{attempt}", **{ROLE: role, ATTEMPT: attempt}) for role, attempt in both]
    found = Observed({"status": {"restarts": 2}}, pods=(*pods, pod("unlabelled")))
    assert [name_of(one) for one in found.present(found.pods)] == ["learner-2", "rollout-2", "unlabelled"]
    assert [name_of(one) for one in found.pods_of("learner")] == ["learner-2"]
