"""When a run must be over, for whoever waits for it and for the janitor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from components.launch.kubernetes.janitor import decide, last_moment
from components.launch.kubernetes.manifests import jobset
from tests.kubernetes.profiles import plan

MADE = datetime(2026, 1, 1, tzinfo=UTC)
"""When the profiles were submitted."""
ATTEMPT = timedelta(seconds=7200 + 300)
LAST = MADE + 4 * ATTEMPT + timedelta(minutes=10)


def one(**status: Any) -> dict[str, Any]:
    """A run whose attempts may take two hours, with three restarts and a grace of five minutes."""
    found = jobset(plan("cpu"))
    found["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "u"}
    return {**found, "status": status}


def test_all_attempts_have_their_time_and_the_cluster_its_own() -> None:
    """It ends an attempt at its deadline, and says so: nobody else must be quicker."""
    assert last_moment(one()) == LAST
    assert last_moment(one(restarts=3, restartsCountTowardsMax=3)) == LAST


def test_a_disruption_takes_no_time_from_the_other_attempts() -> None:
    assert last_moment(one(restarts=3, restartsCountTowardsMax=1)) == LAST + 2 * ATTEMPT


def test_waiting_in_a_queue_is_no_attempt() -> None:
    held = one()
    held["spec"]["suspend"] = True
    assert last_moment(held) is None
    resumed = {"type": "Suspended", "status": "False", "lastTransitionTime": "2026-01-03T06:00:00Z"}
    assert last_moment(one(conditions=[resumed])) == LAST + timedelta(days=2, hours=6)


def test_the_janitor_leaves_a_run_that_waits_or_was_disrupted() -> None:
    held, disrupted = one(), one(restarts=1, restartsCountTowardsMax=0)
    held["spec"]["suspend"] = True
    late = LAST + timedelta(seconds=1)
    assert decide([held, disrupted], lambda run, workspace: None, late) == []
    assert [removal.name for removal in decide([one()], lambda run, workspace: None, late)] == ["arithmetic-1"]


def test_one_of_which_nobody_has_said_it_has_no_end() -> None:
    assert last_moment({"metadata": {"name": "x"}, "spec": {}}) is None
