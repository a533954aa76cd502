"""The flow `audit-verifier`: data and audit of a configuration, and nothing after them.

The stages are those of `post-training`, in the same workspace: a run that follows takes them over as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prefect import flow, get_run_logger

from components.files import read_json
from flows.host.git import project_root
from flows.post_training import run_stage
from flows.prefect_runtime.states import completed_as, expected_failures
from flows.run.parameters import Config, settings_of
from flows.run.workspace import locate
from flows.watching.execution import executing

STAGES = ("data", "audit")


@flow(name="audit-verifier")
@expected_failures
def audit_verifier(
    config: Config = "configs/demo.yaml",
    dataset: str = "",
    overrides: Sequence[str] = (),
    commit: str = "",
    fresh: bool = False,
) -> str:
    """Measure what the verifier makes of right and wrong answers; returns the verdict, ``pass`` or ``fail``.

    Args:
        config: What to audit; a file of the project.
        dataset: Prompts, in place of the configuration's: a .jsonl or .parquet file, or a folder that `datasets` saved.
        overrides: Any other settings, each as section.name=value.
        commit: The recorded code to run; the present working tree when empty.
        fresh: Start over and execute both stages, ignoring the cache.
    """
    fields = settings_of(dataset=dataset)
    workspace = locate(project_root(Path.cwd()), Path(config), [*fields, *overrides], commit or None)
    with workspace.held(fresh=fresh, wait=get_run_logger().info), executing(workspace, "audit-verifier"):
        for stage in STAGES:
            run_stage(workspace, stage, fresh)
    audit = read_json(workspace.layout.audit)
    verdict = str(audit["verdict"])
    get_run_logger().info("%s: %s", workspace.run_id, verdict)
    if verdict != "pass":
        return completed_as(verdict, "CannotBeTrusted", "\n".join(audit["reasons"]))
    return verdict
