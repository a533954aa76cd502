"""The flow `audit-verifier`: data and audit of a configuration, and nothing after them.

The stages are those of `post-training`, in the same workspace: a run that follows takes them over as they are.
"""

from __future__ import annotations

from pathlib import Path

from prefect import flow, get_run_logger

from components.files import read_json
from flows.git import project_root
from flows.post_training import run_stage
from flows.watching.execution import executing
from flows.workspace import locate

STAGES = ("data", "audit")


@flow(name="audit-verifier")
def audit_verifier(
    config: str = "configs/demo.yaml",
    overrides: list[str] | None = None,
    commit: str | None = None,
    fresh: bool = False,
) -> str:
    """Measure what the verifier makes of right and wrong answers; returns the verdict, ``pass`` or ``fail``.

    Args:
        config: configuration file, relative to the folder where the flow runs.
        overrides: settings that replace those of the file, each as ``section.name=value``.
        commit: the recorded code to run; the present working tree when empty.
        fresh: begin anew and execute both stages, whatever is already known.
    """
    workspace = locate(project_root(Path.cwd()), Path(config), overrides or (), commit)
    with workspace.held(fresh=fresh), executing(workspace, "audit-verifier", config, overrides):
        for stage in STAGES:
            run_stage(workspace, stage, fresh)
    verdict = str(read_json(workspace.layout.audit)["verdict"])
    get_run_logger().info("%s: %s", workspace.run_id, verdict)
    return verdict
