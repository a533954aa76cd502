"""Starts server, registration and worker in order, keeps them alive, and ends them in the opposite order; and gives
flow runs back that lost their process, so that a worker continues them."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from components.errors import InputError
from components.files import os_errors
from flows.prefect_runtime.environment import HEARTBEAT_SECONDS, prefect_home
from flows.prefect_runtime.server import WITH_PROCESS, ZOMBIE, PrefectServer, ServerUnavailable
from flows.serving.options import (
    POOL,
    Options,
    check_free,
    registrar_environment,
    server_environment,
    worker_environment,
)
from flows.serving.pages import PageServer
from flows.serving.service import (
    ProcessIdentity,
    Service,
    SupervisedProcess,
    end_leftovers,
    exclusive,
    service_file,
    wait_for,
    write_service,
)

STARTUP = 180.0
"""Seconds that the server may take; the first start makes the database."""
REGISTRATION = 120.0
SERVER_GRACE = 10.0
REQUEST_TIMEOUT = 30.0
CATCHING_UP = timedelta(seconds=6 * HEARTBEAT_SECONDS)
"""How long after its start a server may mark a run as crashed for heartbeats that it missed while it was off."""
BUSY = 10.0
"""Seconds until a worker is started again that a busy server did not let start."""
LOOK = 0.3
"""Seconds between two checks of the supervised processes."""


class Serving:
    """What `evenkeel serve` is while it runs."""

    def __init__(self, options: Options, console: Console) -> None:
        self._options, self._console = options, console
        self._project = options.project
        self._prefect = PrefectServer(options.api_url, options.auth, REQUEST_TIMEOUT)
        self._stopping = threading.Event()
        self._logs = options.project / ".state" / "serve"
        self._worker_name = f"{socket.gethostname()}-{hashlib.sha256(bytes(options.project)).hexdigest()[:6]}"
        self._parts: dict[str, SupervisedProcess] = {}
        self._server_began: datetime | None = None

    def run(self) -> None:
        """Serve until a signal.

        Raises:
            InputError: it cannot be started, or a part of it dies again and again.
        """
        with exclusive(self._project), self._signals():
            end_leftovers(self._project)
            check_free(self._options.port)
            service_file(self._project).unlink(missing_ok=True)
            try:
                with PageServer(self._project) as pages:
                    self._start(pages.url)
                    while not self._stopping.wait(LOOK):
                        self._supervise(pages.url)
            finally:
                self._end()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT, SIGTERM and SIGHUP ask for an orderly end; more of them do not hurry it."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._stopping.set()

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _start(self, pages_url: str) -> None:
        began = time.monotonic()
        ready = self._start_server()
        if self._stopping.is_set():
            return
        if not ready:
            server, how = self._parts["server"], "see the log; `evenkeel doctor` checks this machine"
            raise InputError(f"the Prefect server did not start; {server.ending()}", where=server.log, how=how)
        where = "database elsewhere" if self._options.database else "SQLite in the project"
        self._print(f"server    {self._options.api_url}  ({where}, {time.monotonic() - began:.1f} s)")
        for line in self._register():
            self._print(line)
        if self._stopping.is_set():
            return
        self._start_worker(pages_url, "evenkeel serve was ended")
        self._print(f"pages     {pages_url}")
        self._print(f"UI        {self._options.base_url}")
        self._print("Ctrl-C ends all of this; runs under way then are continued by the next `evenkeel serve`")

    def _start_server(self) -> bool:
        """Whether it answers; one that does not is ended."""
        command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
        command += ["--host", "127.0.0.1", "--port", str(self._options.port)]
        command += ["--log-level", "warning", "--timeout-graceful-shutdown", "3"]
        env = server_environment(self._options)
        self._server_began = datetime.now(UTC)
        self._run_part("server", command, env, SERVER_GRACE, prefect_home(self._project))
        server = self._parts["server"]
        answers = wait_for(lambda: not server.alive or self._prefect.ready(), STARTUP, self._stopping.is_set)
        if answers and server.alive:
            return True
        server.child.stop()
        return False

    def _start_worker(self, pages_url: str, why: str) -> None:
        began = self._server_began  # if that is not long ago, it has missed heartbeats and takes runs for dead
        recent = began if began and datetime.now(UTC) - began < CATCHING_UP else None
        for name in reschedule(self._prefect, why, self._worker_name, recent):
            self._print(f"continue  {name}")
        command = [sys.executable, "-m", "flows.serving.worker", POOL, self._worker_name]
        env = worker_environment(self._options, pages_url)
        # No grace period: a run is killed with its worker; on SIGTERM it would set its own state to Crashed.
        self._run_part("worker", command, env, 0.0, self._project)
        self._write_service(pages_url)

    def _run_part(self, name: str, command: list[str], env: Mapping[str, str], grace: float, folder: Path) -> None:
        home = prefect_home(self._project)
        with os_errors("write", home):
            home.mkdir(parents=True, exist_ok=True)
        if name in self._parts:
            self._parts[name].start()
            return
        log = self._logs / f"{name}.log"
        log.unlink(missing_ok=True)  # of the last time
        self._parts[name] = SupervisedProcess(name, command, env, log, folder, grace)

    def _write_service(self, pages_url: str) -> None:
        parts = {name: who for name, part in self._parts.items() if (who := part.who)}
        me = ProcessIdentity.of(os.getpid())
        urls = {"api_url": self._options.api_url, "ui_url": self._options.base_url, "pages_url": pages_url}
        write_service(self._project, Service(server=me, parts=parts, **urls))

    def _register(self) -> list[str]:
        """What was deployed, in the words of `flows.serving.register`."""
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.serving.register"],
            cwd=self._project,
            env={**os.environ, **registrar_environment(self._options)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, said = process.communicate(timeout=REGISTRATION)
        except subprocess.TimeoutExpired:
            process.kill()
            out, said = process.communicate()
        if process.returncode and not self._stopping.is_set():
            raise InputError(f"the deployments could not be registered:\n{said.strip()}")
        return out.splitlines()

    def _supervise(self, pages_url: str) -> None:
        """Start again what has died."""
        for name, part in self._parts.items():
            if part.alive or self._stopping.is_set():
                continue
            if name != "server" and not self._prefect.ready():
                continue  # the server is restarted first
            pause = part.record_exit()
            self._print(f"{part.ending()}\n{name} is started again" + (f" in {pause:.0f} s" if pause else ""))
            if part.gave_up:
                raise InputError(f"the {name} dies again and again", where=part.log, how="see the log for the reason")
            if self._stopping.wait(pause):
                return
            if self._started_again(name, pages_url):
                self._print(f"{name} is back")

    def _started_again(self, name: str, pages_url: str) -> bool:
        """Whether a part that died is back; the next look tries again where it is not."""
        if name == "server":
            ready = self._start_server()
            self._write_service(pages_url)
            return ready
        try:
            self._start_worker(pages_url, "its worker ended")
        except ServerUnavailable as error:  # it may be busy: no reason to end what is served
            self._print(f"the worker is not started yet: {error}")
            self._stopping.wait(BUSY)
            return False
        return True

    def _end(self) -> None:
        """The worker with its runs first, then their state is set right, then the server ends."""
        worker, server = self._parts.get("worker"), self._parts.get("server")
        if worker is not None:
            worker.child.stop()
            with suppress(ServerUnavailable):  # the next start of `serve` reschedules
                for name in reschedule(self._prefect, "evenkeel serve was stopped", self._worker_name):
                    self._print(f"stopped   {name}; the next `evenkeel serve` continues it")
        if server is not None:
            server.child.stop()
        service_file(self._project).unlink(missing_ok=True)
        self._print("stopped")


def reschedule(server: PrefectServer, why: str, worker: str, crashed_since: datetime | None = None) -> list[str]:
    """Schedule every run again that ``worker`` had under way, now that it is gone; returns their names. Their state
    says ``why`` the worker ended.

    A flow run of the pool dies with its worker (`flow_run`), and Prefect does not notice: the run would stay Running
    for ever. It starts again from its first line, and reuses its workspace: finished stages are cached, the interrupted
    one continues from its checkpoint. A run whose cancellation was requested is cancelled.

    Args:
        crashed_since: a server that was off for a while marks all these runs as crashed when it starts; runs that it
            marked since this time are rescheduled too.

    Raises:
        ServerUnavailable: it does not answer, or refuses.
    """
    wanted = {
        "work_pools": {"name": {"any_": [POOL]}},
        "flow_runs": {"state": {"type": {"any_": [*WITH_PROCESS, *(["CRASHED"] if crashed_since else [])]}}},
    }
    returned = []
    # A run that no worker has signed yet may be about to start at another one.
    workers = server.post(f"/work_pools/{POOL}/workers/filter", {})
    unsigned = "" if any(one["status"] == "ONLINE" and one["name"] != worker for one in workers) else worker
    for run in list(server.flow_runs(wanted)):
        if run["labels"].get("prefect.worker.name", unsigned) != worker:
            continue
        if run["state_type"] == "CRASHED" and not _taken_for_dead(run["state"], crashed_since):
            continue
        if run["state_type"] == "CANCELLING":
            state = {"type": "CANCELLED", "name": "Cancelled", "message": f"Cancelled; {why}."}
        else:
            state = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": f"To be continued: {why}."}
            returned.append(run["name"])
        server.set_state(run["id"], state, force=True)
    return returned


def _taken_for_dead(state: Mapping[str, Any], since: datetime | None) -> bool:
    at = datetime.fromisoformat(state["timestamp"])
    return since is not None and at >= since and str(state["message"]).startswith(ZOMBIE)
