"""The flow `janitor`: removes what dead runs left behind, and requests approval of candidates whose event was lost.

Safe at any time, next to any other command; running runs are not touched.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact
from prefect.client.orchestration import get_client
from pydantic import Field

from components.config.kubernetes import NAME
from flows.cleaning.cleanup import MOST_DAYS, clean
from flows.host.git import project_root
from flows.prefect_runtime.states import expected_failures

KEY = "janitor"
Days = Annotated[int, Field(ge=0, le=MOST_DAYS)]
Namespace = Annotated[str, Field(pattern=rf"{NAME}|^$")]


@flow(name="janitor")
@expected_failures
def janitor(keep_days: Days = 0, namespace: Namespace = "") -> list[dict[str, str]]:
    """End processes, remove partial folders, and close flow runs of dead runs; returns the actions.

    Args:
        keep_days: Remove workspaces of runs that ended longer ago and are recorded on their branch. 0: keep all.
        namespace: Also delete orphaned JobSets in this namespace of the present cluster. Empty: none.
    """
    with get_client(sync_client=True) as server:
        api = str(server.api_url)
    actions = clean(project_root(Path.cwd()), keep_days, api, namespace)
    for action in actions:
        get_run_logger().info("%s %s: %s, %s", action.kind, action.what, action.done, action.why)
    rows = [asdict(action) for action in actions]
    create_table_artifact(rows, key=KEY, description=f"{len(rows)} cleanup actions")
    return rows
