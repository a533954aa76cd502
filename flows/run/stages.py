"""One stage of a run: `dvc repro --single-item <stage>` inside the workspace, by the run's one DVC process."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from components.errors import EXIT_BAD_INPUT, EXIT_NO_CANDIDATE, EvenkeelError
from components.files import append_line, dump_line
from components.layout import EVALUATIONS_VARIABLE
from components.progress import PROGRESS_VARIABLE
from components.status import StageStatus, clear_status, read_status
from components.working import Work, describe
from flows.budget.history import record_execution
from flows.budget.spending import BudgetSpent, attempt
from flows.host import dvc
from flows.host.dvc_process import run_dvc
from flows.host.processes import run
from flows.run.workspace import POLL, Workspace

LOCK_TIMEOUT = 300.0
"""Seconds that a stage waits for another DVC command in its workspace."""
INTERVAL = 3.5
"""Seconds without a line in the progress file after which `report_idle` writes one."""
LOOKS = 10
"""Looks at the file in that time."""

Command = Callable[..., int]
"""Runs with the environment ``env``, its output in ``log``, for ``timeout`` seconds; returns the exit code."""
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
    """The environment of a stage: that of DVC, where to report progress, and where answers to test prompts are kept."""
    return {
        **dvc.environment(workspace.project),
        PROGRESS_VARIABLE: str(workspace.progress),
        EVALUATIONS_VARIABLE: str(workspace.evaluations),
    }


def reproduce(workspace: Workspace, stage: str, *, force: bool = False) -> StageResult:
    """Bring one stage up to date; the stages before it are taken as they are. With ``force`` it is executed even if
    nothing changed or the cache knows the result.

    Raises:
        StageFailed: it was stopped by anything but its own answer.
    """
    arguments = ["repro", "--single-item", *(["--force"] if force else []), stage]
    result = _run(workspace, stage, partial(run_dvc, arguments, root=workspace.root))
    if result.state in ("done", "cached"):
        record_execution(workspace, stage, executed=result.state == "done")
    return result


def execute(workspace: Workspace, stage: str) -> StageResult:
    """Execute one stage on whatever is there, outside DVC, which would ask for every stage before it. One that does not
    succeed is `StageFailed`."""
    command = [sys.executable, "-m", "components", stage, "--config", "params.yaml"]
    return _run(workspace, stage, partial(run, command, cwd=workspace.root))


def _run(workspace: Workspace, stage: str, command: Command) -> StageResult:
    began = time.monotonic()

    def report(state: StageState, message: str = "") -> StageResult:
        seconds = round(time.monotonic() - began, 1)
        append_line(workspace.progress, {"stage": stage, "state": state, "seconds": seconds})
        return StageResult(stage, state, seconds, message)

    report("running")
    clear_status(workspace.layout, stage)
    log = workspace.log(stage)
    try:
        code, log_start = _run_when_unlocked(workspace, stage, command, log)
    except BudgetSpent:
        report("failed")
        raise
    status = read_status(workspace.layout, stage)
    if code == 0:
        return report("done" if status else "cached")
    if status and status.exit_code == EXIT_NO_CANDIDATE:
        return report("refused", status.message)
    report("failed")
    if not status or status.exit_code == 0:  # it was killed, or DVC did not even start it
        said = dvc.last_error(log, log_start)
        if dvc.busy(log, log_start):
            who, minutes = dvc.holder(workspace.root) or "another process", f"{LOCK_TIMEOUT / 60:.0f} minutes"
            said = f"{who} held DVC's lock of this workspace for {minutes}; stop it, or wait for it"
        status = StageStatus(EXIT_BAD_INPUT, said)
    raise StageFailed(stage, status, log)


def _run_when_unlocked(workspace: Workspace, stage: str, command: Command, log: Path) -> tuple[int, int]:
    """Run the command; retry while a living process holds DVC's lock of the workspace, up to `LOCK_TIMEOUT`. Returns
    its exit code, and where in the log its last attempt begins."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        start = log.stat().st_size if log.exists() else 0
        with attempt(workspace, stage) as account, report_idle(workspace, stage):
            code = command(env=environment(workspace), log=log, timeout=account.left)  # of the run's budget
            account.whole = code == 0
        if code == 0 or read_status(workspace.layout, stage) or not dvc.busy(log, start):
            return code, start
        said = ""
        while (who := dvc.holder(workspace.root)) and time.monotonic() < deadline:
            if who != said:
                said, note = who, f"waits for {who}, which holds DVC's lock of this workspace"
                append_line(workspace.progress, {"stage": stage, "done": 0, "total": 0, "note": note})
            time.sleep(POLL)
        if time.monotonic() >= deadline:
            return code, start


@contextmanager
def report_idle(workspace: Workspace, stage: str) -> Iterator[None]:
    """Inside the block a command executes ``stage``; no silence in the progress file lasts longer than `INTERVAL`.

    DVC hashes what a stage depends on, and later saves outputs to the cache and links them; with a model of gigabytes
    that takes minutes. A stage that runs reports by itself (`components.progress`); one that could not for some
    seconds, such as while libraries are loaded, is spoken for here.
    """
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(workspace, stage, over), name=f"silence-{stage}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(workspace: Workspace, stage: str, over: threading.Event) -> None:
    looks, size, reported = 0, _size(workspace), False
    work = Work(_doing(workspace, stage, reported))
    while not over.wait(INTERVAL / LOOKS):
        if (now := _size(workspace)) != size:
            looks, size, reported = 0, now, True
        what, looks = _doing(workspace, stage, reported), looks + 1
        if what != work.what:
            work = Work(what)
        if looks > LOOKS:
            line = {"stage": stage, "work": describe(work, time.monotonic())}
            append_line(workspace.progress, line)
            looks, size = 0, size + len(dump_line(line).encode())


def _doing(workspace: Workspace, stage: str, reported: bool) -> str:
    if read_status(workspace.layout, stage) is not None:
        return "DVC saves the outputs to its cache"
    return "working" if reported else "DVC checks what has changed"


def _size(workspace: Workspace) -> int:
    return workspace.progress.stat().st_size if workspace.progress.exists() else 0
