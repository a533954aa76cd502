"""`evenkeel serve`: runs from the UI's side, what is deployed, and who may serve a second time."""

from __future__ import annotations

from datetime import datetime

from tests.served.service import Service, evenkeel

FIRST_STAGE = 5.0
"""Seconds from the trigger to the first stage."""


def test_a_run_started_in_the_ui_completes(service: Service) -> None:
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=["name=from-the-ui"])
    assert service.wait(run)["state_type"] == "COMPLETED", service.logs(run)
    assert {"run-health", "run-report"} <= service.artifacts(run).keys()


def test_the_first_stage_begins_soon_after_the_trigger(service: Service) -> None:
    delays = []
    for number in range(3):
        run = service.trigger("audit-verifier", config="configs/demo.yaml", overrides=[f"name=soon-{number}"])
        service.wait(run, "COMPLETED")
        created = datetime.fromisoformat(service.flow_run(run)["created"])
        delays.append((datetime.fromisoformat(service.task_runs(run)[0]["start_time"]) - created).total_seconds())
    print("seconds from the trigger to the first stage:", delays)
    assert min(delays) < FIRST_STAGE


def test_a_second_serve_is_refused_and_told_where_the_first_is(service: Service) -> None:
    second = evenkeel(service.project, "serve", "--port", "0")
    assert second.returncode == 2
    assert f"process {service.process.pid} at {service.place.ui_url}" in second.stderr
