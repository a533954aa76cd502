"""`evenkeel serve` for a team: a password, messages to a webhook, signs of life, and pages."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import httpx
import pytest

from tests.served.service import Service, environment, evenkeel, wait_for

AUTH = "team:a-long-secret"
SECRET_PATH = "/hooks/only-we-know-this"


class Receiver(BaseHTTPRequestHandler):
    """A webhook as chat systems have them."""

    messages: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.messages.append((self.path, json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def messages() -> str:
    """All messages so far."""
    return "\n".join(body["text"] for _, body in Receiver.messages)


@pytest.fixture(scope="module")
def webhook() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}{SECRET_PATH}"
    server.shutdown()


@pytest.fixture(scope="module")
def service(project: Path, webhook: str) -> Iterator[Service]:
    with Service(project, PREFECT_SERVER_API_AUTH_STRING=AUTH, EVENKEEL_NOTIFY_URL=webhook) as service:
        yield service


def emit(service: Service, event: str, resource: str, occurred: datetime, **payload: Any) -> None:
    one = {
        "occurred": occurred.isoformat(),
        "event": event,
        "resource": {"prefect.resource.id": resource},
        "payload": payload,
        "id": str(uuid4()),
    }
    url = f"{service.api_url}/events"
    httpx.post(url, json=[one], auth=service.auth, timeout=30).raise_for_status()


@pytest.fixture(scope="module", autouse=True)
def silent_run(service: Service) -> str:
    """A run whose process gives one sign of life and then none. The server looks for such runs every 90 seconds."""
    time.sleep(5)  # a server that has just got its automations needs a moment to know them
    flow = service.deployment("audit-run")["flow_id"]
    run = service.post("/flow_runs/", flow_id=flow, state={"type": "RUNNING", "name": "Running"})["id"]
    emit(service, "prefect.flow-run.heartbeat", f"prefect.flow-run.{run}", datetime.now(UTC))
    return str(run)


def test_without_the_password_the_server_returns_no_data(service: Service) -> None:
    assert httpx.post(f"{service.api_url}/flow_runs/filter", json={}).status_code == 401
    assert httpx.get(f"{service.api_url}/ready").status_code == 200
    assert httpx.get(f"{service.place.ui_url}/").status_code == 200, "the UI asks for the password itself"


def test_with_it_runs_complete_and_their_pages_can_be_read(service: Service) -> None:
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=["name=team"])
    assert service.wait(run)["state_type"] == "COMPLETED", service.logs(run)
    (report,) = service.project.glob("runs/team-*/out/report.html")
    path = report.relative_to(service.project).as_posix()
    assert httpx.get(f"{service.place.pages_url}/{path}").content == report.read_bytes()


def test_a_candidate_and_a_failed_run_reach_the_webhook(service: Service) -> None:
    wait_for(lambda: "awaits approval: 1 approval needed" in messages(), 60, messages)
    run = service.trigger("post-training", config="configs/demo.yaml", overrides=["train.steps=no-number"])
    assert service.wait(run)["state_type"] == "FAILED"
    name = service.flow_run(run)["name"]
    wait_for(lambda: f"post-training ({name}) failed" in messages(), 60, messages)
    assert "train.steps" in messages()
    assert f"{service.place.ui_url}/runs/flow-run/{run}" in messages()
    assert {path for path, _ in Receiver.messages} == {SECRET_PATH}


def test_a_collapsed_training_is_notified(service: Service) -> None:
    emit(service, "evenkeel.run.collapsed", "evenkeel.run.x", datetime.now(UTC), run="x-1", reason='it said "no"\n<b>')
    wait_for(lambda: 'the training of x-1 collapsed and was stopped: it said "no"\n<b>' in messages(), 60, messages)


def test_secrets_are_written_down_nowhere(service: Service) -> None:
    written = [service.said(), service.log("server"), service.log("worker")]
    written += [path.read_text(encoding="utf-8") for path in service.project.glob(".state/*.json")]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    for secret in ("a-long-secret", SECRET_PATH):
        assert secret not in "\n".join([*written, listed])


def test_commands_use_the_server_by_themselves(service: Service) -> None:
    done = evenkeel(service.project, "doctor", PREFECT_API_AUTH_STRING=AUTH)
    assert service.api_url in done.stdout.replace("\n", "")
    before = {run["id"] for run in service.post("/flow_runs/filter")}
    done = evenkeel(service.project, "run", "--set", "name=team", PREFECT_API_AUTH_STRING=AUTH)
    assert done.returncode == 0, done.stdout + done.stderr
    new = [run for run in service.post("/flow_runs/filter") if run["id"] not in before]
    (state,) = (run["state_type"] for run in new if run["deployment_id"] is None)
    assert state == "COMPLETED"


def test_a_run_without_a_sign_of_life_is_crashed_and_notified(service: Service, silent_run: str) -> None:
    found = service.wait(silent_run, "CRASHED", seconds=200)
    assert "no sign of life for 90 seconds" in found["state"]["message"]
    wait_for(lambda: f"audit-run ({found['name']}) crashed" in messages(), 60, messages)


def test_without_a_webhook_only_the_signs_of_life_are_watched(service: Service) -> None:
    home = str(service.project / ".state/prefect")
    server = environment(PREFECT_API_URL=service.api_url, PREFECT_API_AUTH_STRING=AUTH, PREFECT_HOME=home)
    command = [sys.executable, "-m", "flows.serving.register"]  # as the next start without one does
    done = subprocess.run(command, cwd=service.project, env=server, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = [automation["name"] for automation in service.post("/automations/filter")]
    assert [name for name in names if name.startswith("evenkeel: ")] == ["evenkeel: no sign of life"]
    assert not [block for block in service.post("/block_documents/filter") if block["name"] == "evenkeel-notify"]
