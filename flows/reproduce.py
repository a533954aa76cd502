"""The flow `reproduce`: executes a recorded run again and compares it with its record."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.artifacts import create_markdown_artifact

from components.errors import EXIT_NO_CANDIDATE, EvenkeelError
from components.health.summaries.markdown import plain
from flows.display.output import markdown_table
from flows.host.git import project_root
from flows.post_training import run_stage
from flows.prefect_runtime.states import expected_failures
from flows.recording.reproduction import Comparison, checked_out, reproduce_run

ARTIFACT = "reproduction"
SHOWN = 200
"""Rows of the table in the UI."""


class Differs(EvenkeelError):
    """The run was executed again and the results differ from the record (exit code 3)."""

    exit_code = EXIT_NO_CANDIDATE


@flow(name="reproduce")
@expected_failures
def reproduce(run_id: str) -> dict[str, Any]:
    """Execute a recorded run again from its branch; the flow fails if the result differs.

    Args:
        run_id: The run, or the first characters of its id; its branch runs/RUN-ID must be here.
    """
    say = get_run_logger().info
    with checked_out(project_root(Path.cwd()), run_id, wait=say) as reproduction:
        found = reproduce_run(reproduction, partial(run_stage, force=True))
    create_markdown_artifact(as_markdown(found), key=ARTIFACT, description=f"Reproduction of {found.run_id}")
    if not found.equal:
        raise Differs(f"{found.run_id} came out differently: {len(found.differences)} differences", where=run_id)
    say("%s came out as recorded", found.run_id)
    return found.to_dict()


def as_markdown(found: Comparison) -> str:
    """The table for the UI."""
    compared = f"{sum(found.outputs.values())} outputs and {sum(found.metrics.values())} metrics compared"
    lines = [f"# Reproduction of {found.run_id}", "", f"Commit `{found.commit[:12]}`, {compared}.", ""]
    if found.equal:
        return "\n".join([*lines, "**Everything came out as recorded.**", ""])
    rows = [(one.stage, one.what, one.recorded, one.found) for one in found.differences[:SHOWN]]
    lines.append(markdown_table(("stage", "output or metric", "recorded", "found"), rows))
    if found.machine:
        lines += ["", "What is different about this machine:", "", *(f"- {plain(line)}" for line in found.machine)]
    return "\n".join([*lines, ""])
