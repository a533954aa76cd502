"""The flow `audit-run`: the health rules over the log of any trainer, from the UI."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from flows.judging.audit_log import Audit, audit_log, markdown
from flows.prefect_runtime.states import completed_as, expected_failures

AUDIT = "run-audit"


@flow(name="audit-run")
@expected_failures
def audit_run(
    log: str,
    format: Literal["auto", "trl", "verl", "prime-rl", "openrlhf", "nemo-rl", "slime", "jsonl"] = "auto",
    names: str = "",
    rules: str = "",
) -> Audit:
    """Judge a log as `evenkeel audit` does, and show the verdicts.

    Args:
        log: trainer_state.json, a console's output, or JSON lines; relative to the project.
        format: Who wrote it.
        names: A file that maps its metrics to signals; found by the format when empty.
        rules: A file of health rules; those for such a log when empty.
    """
    found = audit_log(Path(log), format, Path(names) if names else None, Path(rules) if rules else None)
    create_markdown_artifact(markdown(found), key=AUDIT, description=f"Audit of {log}")
    if found.exit_code:
        grave = "; ".join(f"{verdict.rule} at step {verdict.step}" for verdict in found.grave)
        return completed_as(found, "Breached", grave)
    return found
