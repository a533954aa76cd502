"""`evenkeel serve` in a process of its own, and what tests ask of the server that it starts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from flows.serving.service import last_service

STARTED = 240.0
"""Seconds that `serve` may take."""
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "CRASHED"}
OUTSIDE = ("PREFECT_HOME", "PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "EVENKEEL_NOTIFY_URL", "EVENKEEL_OWNER")


def environment(**extra: str) -> dict[str, str]:
    """That of a user who starts `evenkeel` in a project; Prefect's things are in the project then."""
    return {key: value for key, value in os.environ.items() if key not in OUTSIDE} | extra


def evenkeel(project: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """A command of ours, run to its end."""
    command = [sys.executable, "-c", "from flows.cli import main; main()", *arguments]
    return subprocess.run(
        command, cwd=project, env=environment(**extra), capture_output=True, text=True, timeout=300, check=False
    )


def wait_for(
    condition: Callable[[], Any], seconds: float, what: Callable[[], str] = lambda: "", poll: float = 0.2
) -> Any:
    """The first truthy value of ``condition``; fails after ``seconds`` with what ``what`` says."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if found := condition():
            return found
        time.sleep(poll)
    raise AssertionError(f"not within {seconds:g} s: {what()}")


class Service:
    """A running `evenkeel serve` of ``project``. ``with Service(project) as service: ...`` ends it."""

    def __init__(self, project: Path, *arguments: str, **extra: str) -> None:
        self.project, self._extra = project, extra
        self.auth: tuple[str, str] | None = None
        if "PREFECT_SERVER_API_AUTH_STRING" in extra:
            user, _, password = extra["PREFECT_SERVER_API_AUTH_STRING"].partition(":")
            self.auth = (user, password)
        # Prefect's server waits up to a minute for SQLite's lock, and may not answer meanwhile.
        self._http = httpx.Client(auth=self.auth, timeout=90, trust_env=False)
        self._output = project / ".state" / f"serve-{time.monotonic_ns()}.txt"
        self._output.parent.mkdir(exist_ok=True)
        with self._output.open("w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from flows.cli import main; main()", "serve", *(arguments or ("--port", "0"))],
                cwd=project,
                env=environment(**extra),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )

    def __enter__(self) -> Service:
        try:
            wait_for(lambda: "Ctrl-C ends" in self.said() or self.process.poll() is not None, STARTED, self.said)
            assert self.process.poll() is None, self.said()
        except BaseException:
            self.stop()
            raise
        place = last_service(self.project)
        assert place is not None
        self.place = place
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def said(self) -> str:
        """What it printed so far."""
        return self._output.read_text(encoding="utf-8")

    @property
    def api_url(self) -> str:
        return self.place.api_url

    @property
    def port(self) -> str:
        return self.api_url.rpartition(":")[2].partition("/")[0]

    @property
    def environment(self) -> dict[str, str]:
        """For commands that shall use this server; those of `evenkeel` in the project find it by themselves."""
        return environment(PREFECT_API_URL=self.api_url, **self._extra)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it in order; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def log(self, part: str) -> str:
        """Everything that the `server` or the `worker` wrote, flow runs included."""
        return (self.project / ".state/serve" / f"{part}.log").read_text(encoding="utf-8")

    def part(self, name: str) -> psutil.Process:
        """The process of the `server` or the `worker`, below its guardian."""
        place = last_service(self.project)
        assert place is not None
        (process,) = psutil.Process(place.parts[name].pid).children()
        return process

    def family(self) -> list[psutil.Process]:
        """Everything below `serve`, flow runs and their stages included."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def post(self, path: str, **body: Any) -> Any:
        """POST to the API, as in ``post("/flow_runs/filter", limit=3)``."""
        return self._send("POST", path, body)

    def get(self, path: str) -> Any:
        return self._send("GET", path, None)

    def _send(self, method: str, path: str, body: Any) -> Any:
        for _ in range(5):
            answer = self._http.request(method, f"{self.api_url}{path}", json=body)
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:  # SQLite, busy; Prefect's own client asks again
                break
            time.sleep(1)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def patch(self, path: str, **body: Any) -> None:
        self._send("PATCH", path, body)

    def deployment(self, name: str) -> dict[str, Any]:
        """By its name; flow and deployment have the same."""
        found: dict[str, Any] = self.get(f"/deployments/name/{name}/{name}")
        return found

    def trigger(self, deployment: str, **parameters: Any) -> str:
        """Start a run as the UI does; returns the flow run's id."""
        path = f"/deployments/{self.deployment(deployment)['id']}/create_flow_run"
        return str(self.post(path, parameters=parameters, state={"type": "SCHEDULED"})["id"])

    def flow_run(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/flow_runs/{id}")
        return found

    def flow_runs(self, deployment: str) -> list[dict[str, Any]]:
        """The newest first."""
        wanted = {"deployments": {"name": {"any_": [deployment]}}}
        found: list[dict[str, Any]] = self.post("/flow_runs/filter", **wanted, sort="EXPECTED_START_TIME_DESC")
        return found

    def states(self, id: str) -> list[str]:
        """Names of the states that the flow run went through."""
        return [state["name"] for state in self.get(f"/flow_run_states/?flow_run_id={id}")]

    def wait(self, id: str, *states: str, seconds: float = 300, poll: float = 0.2) -> dict[str, Any]:
        """Wait until the flow run is in one of the states (types or names; any final one by default)."""
        wanted = set(states) or FINAL

        def there() -> dict[str, Any] | None:
            run = self.flow_run(id)
            return run if {run["state_type"], run["state_name"]} & wanted else None

        found: dict[str, Any] = wait_for(there, seconds, lambda: f"{self.flow_run(id)['state']}\n{self.logs(id)}", poll)
        return found

    def logs(self, id: str) -> str:
        """The flow run's log in the UI. Prefect sends it every two seconds."""
        wanted = {"flow_run_id": {"any_": [id]}}
        rows = self.post("/logs/filter", logs=wanted, sort="TIMESTAMP_ASC", limit=200)
        return "\n".join(row["message"] for row in rows)

    def artifacts(self, id: str) -> dict[str, dict[str, Any]]:
        """Key -> the latest artifact that the flow run left."""
        wanted = {"flow_run_id": {"any_": [id]}}
        rows = self.post("/artifacts/filter", artifacts=wanted, sort="CREATED_DESC")
        return {row["key"]: row for row in reversed(rows)}

    def task_runs(self, id: str) -> list[dict[str, Any]]:
        """In the order in which they began."""
        wanted = {"flow_run_id": {"any_": [id]}}
        found: list[dict[str, Any]] = self.post("/task_runs/filter", task_runs=wanted, sort="EXPECTED_START_TIME_ASC")
        return found

    def workspace(self, id: str) -> Path:
        """The run's folder, which the log names once the run is over; before that, the newest."""
        named = re.search(r"\b[\w.\-]+-[0-9a-f]{8}\b", self.logs(id))
        if named and (self.project / "runs" / named[0]).exists():
            return self.project / "runs" / named[0]
        return max((self.project / "runs").iterdir(), key=lambda folder: folder.stat().st_ctime)

    def wait_until_training(self, name: str, seconds: float = 300) -> Path:
        """Wait until the fake train stage of the run whose settings have ``name`` has done some work; its mark."""

        def there() -> Path | None:
            return next(iter(self.project.glob(f"runs/{name}-*/.state/train.done")), None)

        found: Path = wait_for(there, seconds, lambda: self.log("worker")[-3000:])
        return found
