"""Prefect for a run started by hand: its settings, which must be there before it is imported, and its server."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx

from components.errors import InputError
from components.loading import without_collection
from components.processes.environments import LOOPBACK
from components.working import working
from flows.host.processes import lock_file
from flows.serving.service import served

SERVER = Path(__file__).with_name("temporary_server.py")
API_VARIABLE = "PREFECT_API_URL"
ONLY_RECORDS = {"PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false"}
"""For the temporary server: it has no UI in which anybody could look for kinds of blocks."""
GRACE = 5.0
"""Seconds that the temporary server has to end, as Prefect gives its own."""
HEARTBEAT_SECONDS = 30
"""Between two signs of life of a flow run, however it was started; the shortest that Prefect allows. The server that
serves takes a run that is silent for long for dead (`flows.serving.automations`)."""
_temporary: Future[str] | None = None


def prefect_home(project: Path) -> Path:
    """Where Prefect keeps its database and everything else."""
    return Path(os.environ.get("PREFECT_HOME", project / ".state" / "prefect"))


def prefect_environment(project: Path, *, quiet: bool) -> dict[str, str]:
    """A private Prefect for a run started by hand; what the caller has set already wins. ``quiet`` keeps Prefect's log
    off the terminal; it goes to the server all the same.

    The server of `evenkeel serve` is used where one runs for this project. Without it and without ``PREFECT_API_URL``
    Prefect starts a server of its own on the loopback interface for as long as the flow runs. Its database stays in the
    project, so only the very first start has to create it.
    """
    home = prefect_home(project)
    wanted = {
        "PREFECT_HOME": str(home),
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "storage"),
        "PREFECT_SERVER_MEMO_STORE_PATH": str(home / "memo_store.toml"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_CLIENT_MAX_RETRIES": "2",  # six seconds a request, not a minute: a server may go away for good
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),
        "DO_NOT_TRACK": "1",
    }
    if (service := served(project)) is not None:
        wanted[API_VARIABLE] = service.api_url
    if quiet:
        wanted["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
        wanted["PREFECT_INTERNAL_LOGGING_LEVEL"] = "CRITICAL"  # else an error for each event, when the server is gone
    return {key: value for key, value in wanted.items() if key not in os.environ}


@contextmanager
def loading() -> Iterator[None]:
    """Inside the block the flows are imported. Where no server is named a temporary one starts meanwhile."""
    with working("loading Prefect"), without_collection():
        _begin_server()
        yield


def _begin_server() -> None:
    global _temporary
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    if settings.api.url is not None or not settings.server.ephemeral.enabled:
        return
    url: Future[str] = Future()
    seconds = settings.server.ephemeral.startup_timeout_seconds

    def start() -> None:
        try:
            url.set_result(_start_temporary_server(settings.home, seconds))
        except BaseException as error:
            url.set_exception(error)

    # A daemon: a process that is interrupted meanwhile does not wait for it.
    Thread(target=start, name="temporary server", daemon=True).start()
    _temporary = url


def start_server() -> None:
    """Wait until the Prefect server answers. One that does not, or not without another password, is an `InputError`."""
    from prefect.client.orchestration import get_client
    from prefect.context import refresh_global_settings_context
    from prefect.settings import get_current_settings

    if _temporary is None:
        _begin_server()
    if _temporary is not None:
        with working("starting the Prefect server"):
            url = _temporary.result()
        # Prefect takes it for any other server: for one of its own it would load the server's code here. What this
        # process starts may outlive it, so the environment does not name it for long.
        os.environ[API_VARIABLE] = url
        refresh_global_settings_context()
        del os.environ[API_VARIABLE]
    where = get_current_settings().api.url
    with get_client(sync_client=True) as client:
        problem = client.api_healthcheck()  # which needs no password
        if problem is None:
            try:
                client.api_version()
            except httpx.HTTPError as refusal:
                problem = refusal
    if isinstance(problem, httpx.HTTPStatusError) and problem.response.status_code == httpx.codes.UNAUTHORIZED:
        how = "set PREFECT_API_AUTH_STRING to the user:password that the server was given"
        raise InputError("the Prefect server asks for another password", where=where, how=how)
    if problem:
        raise InputError(f"the Prefect server does not answer: {problem}", where=where)


def lasting_server() -> str | None:
    """The address of the server's API; None where it is a temporary one."""
    from prefect.settings import get_current_settings

    return None if _temporary else get_current_settings().api.url


def _start_temporary_server(home: Path, timeout: float) -> str:
    """Start it in a session of its own and return the address of its API.

    Prefect's own would die of a signal to the whole group, and a run wait minutes for it, to say how it ended.
    """
    with lock_file(home / "starting") as alone, socket.create_server((LOOPBACK, 0)) as listening:
        alone.wait()  # of two servers that make one new database at once, one fails
        number, port = listening.fileno(), listening.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-P", str(SERVER), str(number)],
            stdin=subprocess.PIPE,
            pass_fds=[number],
            env=os.environ | ONLY_RECORDS,
            start_new_session=True,
        )
        listening.close()
        atexit.register(_end, process)
        url = f"http://{LOOPBACK}:{port}/api"
        try:
            httpx.get(f"{url}/health", timeout=timeout, trust_env=False).raise_for_status()
        except httpx.HTTPError as error:
            how = "see its output above"
            raise InputError(f"Prefect's temporary server does not answer: {error}", how=how) from error
    return url


def _end(server: subprocess.Popen[bytes]) -> None:
    """Close its input; then it writes down what it still holds."""
    if server.stdin is not None:
        server.stdin.close()
    try:
        server.wait(GRACE)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
