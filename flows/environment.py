"""Prefect for a run started by hand: its settings, which must be there before it is imported, and its server."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from components.errors import InputError


def prefect_environment(project: Path, *, quiet: bool) -> dict[str, str]:
    """A private, silent Prefect for a run started by hand; what the caller has set already wins.

    Without ``PREFECT_API_URL`` Prefect starts a server of its own on the loopback interface for as long as the flow
    runs. Its database stays in the project, so only the very first start has to create it.

    Args:
        quiet: keep Prefect's log off the terminal; it goes to the server all the same.
    """
    home = Path(os.environ.get("PREFECT_HOME", project / ".state" / "prefect"))
    wanted = {
        "PREFECT_HOME": str(home),
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "storage"),
        "PREFECT_SERVER_MEMO_STORE_PATH": str(home / "memo_store.toml"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_CLI_PROMPT": "false",
        "DO_NOT_TRACK": "1",
    }
    if quiet:
        wanted["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
    return {key: value for key, value in wanted.items() if key not in os.environ}


def start_server() -> None:
    """Wait until the Prefect server answers; a temporary one is started here.

    Its process inherits a blocked SIGINT: Ctrl-C in a terminal reaches every process of the group, and a server that
    died of it could not take down how the run ended. It ends with this process.

    Raises:
        InputError: the server does not answer.
    """
    from prefect.client.orchestration import get_client

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with get_client(sync_client=True) as client:
            problem = client.api_healthcheck()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if problem:
        raise InputError(f"the Prefect server does not answer: {problem}", where=os.environ.get("PREFECT_API_URL"))
