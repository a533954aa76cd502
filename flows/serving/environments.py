"""What the server, the worker and the flow runs find in their environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from components.processes.ports import LOOPBACK
from flows.prefect_runtime.environment import HEARTBEAT_SECONDS, prefect_environment
from flows.prefect_runtime.server import AUTH_VARIABLE
from flows.serving.options import DATABASE_VARIABLE, NOTIFY_VARIABLE, SERVER_AUTH_VARIABLE, Options

PAGES_VARIABLE = "EVENKEEL_PAGES_URL"
POLL_SECONDS = 1
"""Between two looks of the worker for runs that are due."""


def home(project: Path) -> Path:
    """Where Prefect keeps its database and everything else."""
    return Path(os.environ.get("PREFECT_HOME", project / ".state" / "prefect"))


def server(options: Options) -> dict[str, str]:
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
        # A run that waits for a place of its deployment looks again after so many seconds.
        "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "5",
        # Who holds a place of a deployment that may run once at a time is still known after a restart.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        **({DATABASE_VARIABLE: options.database} if options.database else {}),
        **({SERVER_AUTH_VARIABLE: options.auth} if options.auth else {}),
    }


def client(options: Options) -> dict[str, str]:
    """For clients of the server."""
    return {
        **prefect_environment(options.project, quiet=False),
        "PREFECT_API_URL": options.api_url,
        **({AUTH_VARIABLE: options.auth} if options.auth else {}),
    }


def registrar(options: Options) -> dict[str, str]:
    """For `flows.serving.register`."""
    return {**client(options), **({NOTIFY_VARIABLE: options.notify} if options.notify else {})}


def worker(options: Options, pages_url: str) -> dict[str, str]:
    """For the worker, and through it for every flow run."""
    return {
        **client(options),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PREFECT_WORKER_QUERY_SECONDS": str(POLL_SECONDS),
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_SECONDS),
        PAGES_VARIABLE: pages_url,
    }
