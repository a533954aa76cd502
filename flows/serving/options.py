"""What may be chosen about serving, and what server, worker and flow runs then find in their environment."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from components.errors import InputError
from components.processes.environments import LOOPBACK, free_port
from flows.prefect_runtime.environment import HEARTBEAT_SECONDS, prefect_environment
from flows.prefect_runtime.server import AUTH_VARIABLE
from flows.serving.pages import PAGES_VARIABLE

DEFAULT_PORT = 4200
POOL = "local-process"
DATABASE_VARIABLE = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
NOTIFY_VARIABLE = "EVENKEEL_NOTIFY_URL"
SERVER_AUTH_VARIABLE = "PREFECT_SERVER_API_AUTH_STRING"
POLL_SECONDS = 1
"""Between two looks of the worker for runs that are due."""
DRIVERS = ("postgresql+asyncpg", "sqlite+aiosqlite")


@dataclass(frozen=True)
class Options:
    """Checked choices of one `serve`; `choose` makes them."""

    project: Path
    port: int
    database: str = field(default="", repr=False)
    """SQLAlchemy URL; empty: SQLite in the project."""
    notify: str = field(default="", repr=False)
    """Webhook for notifications; empty: none. The URL is a secret: it is enough to write there."""
    auth: str = field(default="", repr=False)
    """``user:password`` that the server asks for; empty: it asks for none."""

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def api_url(self) -> str:
        return f"{self.base_url}/api"


def choose(project: Path, port: int, database: str, notify: str) -> Options:
    """Options from the command line, with what the environment adds; a URL or an auth string that cannot work is an
    `InputError`.

    Secrets leave the environment: what this process starts gets them only where it is meant to (the functions below).
    """
    if _split(database, "--database").password:
        how = f"set {DATABASE_VARIABLE} instead: everybody on this machine can read a command line"
        raise InputError("a password on the command line", where="--database", how=how)
    from_outside = {name: os.environ.pop(name, "") for name in (DATABASE_VARIABLE, NOTIFY_VARIABLE)}
    database = database or from_outside[DATABASE_VARIABLE]
    notify = notify or from_outside[NOTIFY_VARIABLE]
    auth = os.environ.pop(SERVER_AUTH_VARIABLE, "") or os.environ.get(AUTH_VARIABLE, "")
    if database and (kind := _split(database, f"--database or {DATABASE_VARIABLE}").scheme) not in DRIVERS:
        how = "write it as postgresql+asyncpg://user@host:5432/name"
        raise InputError(f"no database of kind {kind!r}", where="--database", how=how)
    hook = _split(notify, f"--notify or {NOTIFY_VARIABLE}")
    if notify and (hook.scheme not in ("http", "https") or not hook.hostname):
        raise InputError("not an http or https URL", where=f"--notify or {NOTIFY_VARIABLE}", how="paste the webhook's")
    if auth and ":" not in auth:
        raise InputError("not of the form user:password", where=SERVER_AUTH_VARIABLE, how="put a colon between them")
    return Options(project, port or free_port(), database, notify, auth)


def _split(url: str, where: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # whose message may hold the URL, and that a password
        how = "write it as scheme://host:port/path; brackets only around an IPv6 address"
        raise InputError("not a URL", where=where, how=how) from None


def check_free(port: int) -> None:
    """Raise unless a server can listen on this loopback port."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do, after one that just ended
            probe.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        how = "choose another one with --port, or --port 0 for any that is free"
        raise InputError(f"port {port} cannot be used: {error}", where=LOOPBACK, how=how) from error


def server_environment(options: Options) -> dict[str, str]:
    """Loopback only; nothing is sent anywhere."""
    return {
        **prefect_environment(options.project, quiet=False),
        "PREFECT_API_URL": options.api_url,
        "PREFECT_SERVER_API_HOST": LOOPBACK,
        "PREFECT_SERVER_API_PORT": str(options.port),
        "PREFECT_SERVER_UI_API_URL": options.api_url,
        "PREFECT_UI_URL": options.base_url,
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        # Seconds between two looks of services for which Prefect's default is 5; each look takes processor time.
        "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS": "15",
        "PREFECT_SERVER_SERVICES_PAUSE_EXPIRATIONS_LOOP_SECONDS": "15",
        "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "15",
        # A run that waits for a place of its deployment looks again after so many seconds.
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "5",
        # Who holds a place of a deployment that may run once at a time is still known after a restart.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        **({DATABASE_VARIABLE: options.database} if options.database else {}),
        **({SERVER_AUTH_VARIABLE: options.auth} if options.auth else {}),
    }


def client_environment(options: Options) -> dict[str, str]:
    """For clients of the server."""
    return {
        **prefect_environment(options.project, quiet=False),
        "PREFECT_API_URL": options.api_url,
        **({AUTH_VARIABLE: options.auth} if options.auth else {}),
    }


def registrar_environment(options: Options) -> dict[str, str]:
    """For `flows.serving.register`."""
    return {**client_environment(options), **({NOTIFY_VARIABLE: options.notify} if options.notify else {})}


def worker_environment(options: Options, pages_url: str) -> dict[str, str]:
    """For the worker, and through it for every flow run."""
    return {
        **client_environment(options),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PREFECT_WORKER_QUERY_SECONDS": str(POLL_SECONDS),
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),
        PAGES_VARIABLE: pages_url,
    }
