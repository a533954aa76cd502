"""Settings of Prefect that must be in the environment before it is imported."""

from __future__ import annotations

import os
from pathlib import Path


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
