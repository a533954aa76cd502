"""One stage of a run: `dvc repro --single-item <stage>` inside the workspace."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from components.errors import EXIT_BAD_INPUT, EXIT_NO_CANDIDATE, EvenkeelError
from components.files import append_line
from components.progress import PROGRESS_VARIABLE
from components.status import StageStatus, clear_status, read_status
from flows.budget.history import remember
from flows.budget.spending import BudgetSpent, attempt
from flows.git import LOCATION_VARIABLES
from flows.processes import run
from flows.workspace import Workspace

StageState = Literal["running", "done", "cached", "failed", "refused"]


@dataclass(frozen=True, slots=True)
class StageResult:
    """How a stage ended: executed (``done``), taken over unchanged (``cached``), or executed with the answer no
    (``refused``, and why), and how long that took."""

    stage: str
    state: StageState
    seconds: float
    message: str = ""


class StageFailed(EvenkeelError):
    """A stage did not succeed; carries the stage's own exit code and message."""

    def __init__(self, stage: str, status: StageStatus, log: Path) -> None:
        super().__init__(f"stage {stage} failed: {status.message}\n  log:   {log}")
        self.exit_code = status.exit_code


def environment(workspace: Workspace) -> dict[str, str]:
    """The environment of a stage: this Python first on the path, the workspace's code before the installed one."""
    inherited = {k: v for k, v in os.environ.items() if k not in (*LOCATION_VARIABLES, "PYTHONSAFEPATH")}
    return {
        **inherited,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
        "DVC_NO_ANALYTICS": "1",
        "DVC_SITE_CACHE_DIR": str(workspace.project / ".state" / "dvc"),
        PROGRESS_VARIABLE: str(workspace.progress),
    }


def reproduce(workspace: Workspace, stage: str, *, force: bool = False) -> StageResult:
    """Bring one stage up to date; the stages before it are taken as they are.

    Args:
        force: execute it even if nothing changed or the cache knows the result.

    Raises:
        StageFailed: it was stopped by anything but its own answer.
    """
    result = _run(workspace, stage, ["dvc", "repro", "--single-item", *(["--force"] if force else []), stage])
    if result.state in ("done", "cached"):
        remember(workspace, stage, executed=result.state == "done")
    return result


def execute(workspace: Workspace, stage: str) -> StageResult:
    """Execute one stage on whatever is there, outside DVC, which would ask for every stage before it.

    Raises:
        StageFailed: it did not succeed.
    """
    return _run(workspace, stage, ["components", stage, "--config", "params.yaml"])


def _run(workspace: Workspace, stage: str, module: list[str]) -> StageResult:
    began = time.monotonic()

    def report(state: StageState, message: str = "") -> StageResult:
        seconds = round(time.monotonic() - began, 1)
        append_line(workspace.progress, {"stage": stage, "state": state, "seconds": seconds})
        return StageResult(stage, state, seconds, message)

    report("running")
    clear_status(workspace.layout, stage)
    log = workspace.log(stage)
    log_start = log.stat().st_size if log.exists() else 0
    command, env = [sys.executable, "-m", *module], environment(workspace)
    try:
        with attempt(workspace, stage) as account:
            code = run(command, cwd=workspace.root, env=env, log=log, timeout=account.left)
            account.whole = code == 0
    except BudgetSpent:
        report("failed")
        raise
    status = read_status(workspace.layout, stage)
    if code == 0:
        return report("done" if status else "cached")
    if status and status.exit_code == EXIT_NO_CANDIDATE:
        return report("refused", status.message)
    report("failed")
    if not status or status.exit_code == 0:
        status = StageStatus(EXIT_BAD_INPUT, _last_error(log, log_start))
    raise StageFailed(stage, status, log)


def _last_error(log: Path, start: int) -> str:
    """What DVC said last, for a stage that was killed or that DVC did not even start."""
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return errors[-1] if errors else "it ended without a message"
