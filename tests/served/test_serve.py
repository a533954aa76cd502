"""`evenkeel serve`: a run from the UI's side, how soon it begins, who can reach it, and who may serve a second time."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import datetime

import httpx
import psutil
import pytest

from tests.served.service import Service, evenkeel

FIRST_STAGE = 5.0
"""Seconds from the trigger to the first stage, on a machine that has nothing else to do."""
IMPORT = 1.5
"""Seconds that such a machine takes to start Python and import Prefect."""


def test_a_run_started_in_the_ui_completes(service: Service) -> None:
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=["name=from-the-ui"])
    assert service.wait(run)["state_type"] == "COMPLETED", service.logs(run)
    assert {"run-health", "run-report"} <= service.artifacts(run).keys()


def how_busy() -> float:
    """How much longer this machine takes for everything at this moment; 1 when it is idle."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import prefect.main"], check=True)
    return max(1.0, (time.monotonic() - began) / IMPORT)


def test_the_first_stage_begins_within_five_seconds_of_the_trigger(service: Service) -> None:
    delays = []
    for number in range(3):
        busy = how_busy()
        run = service.trigger("audit-verifier", config="configs/demo.yaml", overrides=[f"name=soon-{number}"])
        created = datetime.fromisoformat(service.wait(run, "COMPLETED")["created"])
        began = datetime.fromisoformat(service.task_runs(run)[0]["start_time"])
        delays.append((began - created).total_seconds() / busy)
        print(f"{(began - created).total_seconds():.1f} s from the trigger to the first stage, busy {busy:.1f}")
    assert min(delays) < FIRST_STAGE


def test_only_this_machine_can_reach_it(service: Service) -> None:
    processes = [psutil.Process(service.process.pid), *service.family()]
    found = [socket for process in processes for socket in process.net_connections() if socket.status == "LISTEN"]
    assert {socket.laddr.ip for socket in found} == {"127.0.0.1"}


def test_the_ui_talks_to_the_server_that_it_comes_from(service: Service) -> None:
    assert httpx.get(f"{service.place.ui_url}/ui-settings").json()["api_url"] == service.api_url
    assert "<html" in httpx.get(service.place.ui_url).text


def test_a_form_offers_the_choices_of_its_parameters(service: Service) -> None:
    schema = service.deployment("post-training")["parameter_openapi_schema"]
    assert "configs/demo.yaml" in schema["properties"]["config"]["enum"]


@pytest.mark.parametrize("free", [True, False])
def test_a_second_serve_is_refused_with_the_address_of_the_first(service: Service, free: bool) -> None:
    second = evenkeel(service.project, "serve", "--port", "0" if free else service.port)
    assert second.returncode == 2
    assert f"process {service.process.pid} at {service.place.ui_url}" in second.stderr
