"""Schedules: they fire, late starts are skipped, and what people change in the UI stays as they left it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.served.service import Service, wait_for

EVERY = 30
"""Seconds between two scheduled runs."""
START_WITHIN = 25


@pytest.fixture(scope="module", autouse=True)
def deployments(project: Path) -> None:
    """The audit is scheduled like a nightly run; nothing else is, whatever the hour."""
    path = project / "prefect.yaml"
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    for entry in found["deployments"]:
        entry.pop("schedules", None)
        if entry["name"] == "audit-verifier":
            entry["work_pool"]["job_variables"] = {"env": {"EVENKEEL_START_WITHIN": str(START_WITHIN)}}
            entry["schedules"] = [{"slug": "yearly", "cron": "0 0 1 1 *", "timezone": "Europe/Berlin"}]
    path.write_text(yaml.safe_dump(found), encoding="utf-8")


@pytest.fixture
def service(project: Path) -> Iterator[Service]:
    with Service(project) as service:
        yield service


def add_schedule(service: Service, start: datetime) -> None:
    """One that begins at ``start``, as somebody adds it in the UI."""
    schedule = {"interval": EVERY, "anchor_date": start.isoformat(), "timezone": "UTC"}
    id = service.deployment("audit-verifier")["id"]
    service._send("POST", f"/deployments/{id}/schedules", [{"schedule": schedule, "active": True}])


def runs(service: Service) -> list[dict[str, Any]]:
    """Those of the schedule of this test that have begun or are over; the oldest first."""
    found = [run for run in service.flow_runs("audit-verifier") if run["state_type"] != "SCHEDULED"]
    return sorted(found, key=lambda run: str(run["expected_start_time"]))


def due(run: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(run["expected_start_time"])


def test_a_schedule_fires_and_late_starts_are_skipped(project: Path) -> None:
    with Service(project) as first:
        add_schedule(first, datetime.now(UTC) + timedelta(seconds=10))
        run = wait_for(lambda: next(iter(runs(first)), None), 60, first.said)
        assert run["auto_scheduled"]
        assert first.wait(run["id"])["state_name"] == "Completed"
        first.stop()
        stopped = datetime.now(UTC)
    time.sleep(EVERY + START_WITHIN)
    with Service(project, "--port", first.port) as second:
        back = datetime.now(UTC)

        def skipped() -> list[dict[str, Any]]:
            return [run for run in runs(second) if run["state_name"] == "Skipped"]

        late = wait_for(skipped, 60, second.said)
        assert "minutes ago" in late[0]["state"]["message"]
        assert all(due(run) < back for run in late)

        def on_time() -> list[dict[str, Any]]:
            return [run for run in runs(second) if due(run) > back and run["state_type"] == "COMPLETED"]

        wait_for(on_time, 120, second.said)
        missed = [run for run in runs(second) if stopped < due(run) < back - timedelta(seconds=START_WITHIN)]
        assert missed
        assert {run["state_name"] for run in missed} == {"Skipped"}


def test_a_schedule_is_registered_once_and_stays_paused_when_somebody_paused_it(project: Path) -> None:
    with Service(project) as first:
        before = first.deployment("audit-verifier")
        (yearly,) = (schedule for schedule in before["schedules"] if schedule["slug"] == "yearly")
        assert yearly["active"]
        assert (yearly["schedule"]["cron"], yearly["schedule"]["timezone"]) == ("0 0 1 1 *", "Europe/Berlin")
        first.patch(f"/deployments/{before['id']}/schedules/{yearly['id']}", active=False)
        first.patch(f"/deployments/{first.deployment('promote')['id']}", paused=True)
    with Service(project) as second:
        after = second.deployment("audit-verifier")
        assert len(after["schedules"]) == len(before["schedules"]) == 2, "ours, and the one that somebody added"
        (yearly,) = (schedule for schedule in after["schedules"] if schedule["slug"] == "yearly")
        assert not yearly["active"]
        assert second.deployment("promote")["paused"]
        names = [automation["name"] for automation in second.post("/automations/filter")]
        assert len(names) == len(set(names))
