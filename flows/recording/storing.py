"""The end of a run: its record, its branch, and the push. A failure here does not affect the run's result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import Field, ValidationError

from components.code_digest import code_digest
from components.config.base import Section
from components.errors import CorrectableError, EvenkeelError, InputError
from components.files import read_json, read_text, write_json, write_text
from components.stages import OPTIONAL, run_stage, wanted
from flows.host.branches import branch_of, commit_run, push_branch
from flows.host.dvc import configure, default_remote, dvc, environment, locked_in
from flows.host.git import RECORD
from flows.host.processes import run
from flows.recording.inputs import track_inputs
from flows.recording.record import (
    LOCK,
    OutcomeRecord,
    RunRecord,
    StageRecord,
    finish_record,
    new_record,
    read_record,
    stages_since,
    uncached,
    write_record,
)
from flows.run.workspace import Workspace

RESULT_FILE = "recording.json"
REFUSAL = "refusal.html"
NO_REMOTE = "outputs stay on this machine: the project has no DVC remote (`dvc remote add --default` names one)"


class RecordingResult(Section):
    """Where a run is recorded outside its workspace, and what failed on the way."""

    branch: str | None = None
    commit: str | None = None
    dvc_remote: str | None = None
    """The remote that has all outputs and inputs of the commit."""
    git_remote: str | None = None
    """The remote that has the branch."""
    notes: list[str] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)


class Recorder:
    """Receives the outcome of the run; ``result`` holds afterwards where the record was stored."""

    def __init__(self) -> None:
        self.outcome: OutcomeRecord | None = None
        self.result: RecordingResult | None = None

    def conclude(self, candidate: str | None, reason: str = "") -> None:
        """The run ended with a candidate, or without one for this reason."""
        state: str = "candidate" if candidate else "no candidate"
        self.outcome = OutcomeRecord.model_validate({"state": state, "candidate": candidate, "reason": reason})


@contextmanager
def recorded(workspace: Workspace, flow_run_id: str | None = None) -> Iterator[Recorder]:
    """Record the run inside: at once that it began, at its end everything. Call it with the workspace held.

    A run that fails or is stopped has its record only in the workspace, where it can be resumed. Only a complete run
    gets a branch, because a branch must be reproducible.
    """
    before = read_record(workspace.root)
    offset = workspace.progress.stat().st_size if workspace.progress.exists() else 0
    record = new_record(workspace, flow_run_id)
    if before is None or not before.finished:
        write_record(workspace.root, record.model_copy(update={"stages": before.stages if before else {}}))
    recorder = Recorder()

    def close(outcome: OutcomeRecord) -> RunRecord:
        after = finish_record(record, workspace, outcome, stages_since(workspace.progress, offset, before))
        if before and before.finished and (before.digests, before.outcome) == (after.digests, after.outcome):
            return before  # this execution only found the same results again
        return after

    try:
        yield recorder
    except BaseException as error:
        concluded = recorder.outcome
        if concluded is not None and isinstance(error, Exception):  # all stages ended; publishing the result failed
            recorder.result = store_run(workspace, lambda: close(concluded))
            raise
        if before is None or not before.finished:
            with suppress(EvenkeelError):  # a full disk, say: what ended the run matters more
                write_record(
                    workspace.root, close(failure_outcome(error, stages_since(workspace.progress, offset, before)))
                )
        raise
    if (outcome := recorder.outcome) is not None:
        recorder.result = store_run(workspace, lambda: close(outcome))


def failure_outcome(error: BaseException, stages: dict[str, StageRecord]) -> OutcomeRecord:
    """The outcome of a run that failed or was stopped."""
    failed = next((name for name, stage in stages.items() if stage.state in ("failed", "running")), None)
    if isinstance(error, Exception):
        return OutcomeRecord(state="failed", reason=str(error) or type(error).__name__, failed_stage=failed)
    return OutcomeRecord(state="stopped", reason=type(error).__name__, failed_stage=failed)


def store_run(workspace: Workspace, make: Callable[[], RunRecord]) -> RecordingResult:
    """Write the record that ``make`` makes, commit it to the run's branch, and push.

    A failure is a problem in the returned result, and affects nothing else.
    """
    kept = RecordingResult()
    with suppress(InputError):  # without it everything is pushed again, and it is written again
        kept = (read_recording(workspace.root) or kept).model_copy(update={"notes": [], "problems": []})
    try:
        complete_optional_stages(workspace)
        record = make().model_copy(update={"tolerance": workspace.settings.record.tolerance})  # it may change later
        write_record(workspace.root, record)
        files = [RECORD, "params.yaml", *uncached(workspace.root), *track_inputs(workspace)]
        files += [LOCK] if (workspace.root / LOCK).exists() else []
        files += _refusal_report(workspace)
        commit, new = commit_run(workspace.project, workspace.run_id, record.commit, workspace.root, files)
        pushed = {} if new else {"dvc_remote": kept.dvc_remote, "git_remote": kept.git_remote}
        kept = RecordingResult(branch=branch_of(workspace.run_id), commit=commit, **pushed)
        kept = _push(workspace, kept)
    except (CorrectableError, OSError) as error:
        kept = kept.model_copy(update={"problems": [*kept.problems, f"not recorded: {_one_line(error)}"]})
    path = workspace.layout.state / RESULT_FILE
    path.unlink(missing_ok=True)  # if the next line fails, no file is better than an outdated one
    with suppress(CorrectableError):
        write_json(path, kept.model_dump(mode="json"))
    return kept


def _refusal_report(workspace: Workspace) -> list[str]:
    """The report of a run that ended early, which DVC does not track. It is stored under another name than DVC's
    output."""
    report = workspace.layout.report
    if not report.exists() or "report" in locked_in(workspace.root):
        return []
    kept = report.with_name(REFUSAL)
    write_text(kept, read_text(report))
    return [kept.relative_to(workspace.root).as_posix()]


def complete_optional_stages(workspace: Workspace) -> None:
    """Write the empty outputs of the stages that the settings disable, so that `dvc repro` finds nothing to do.

    A run that ended early stays incomplete.

    Raises:
        InputError: DVC could not.
    """
    known = locked_in(workspace.root).keys()
    if not known >= {*wanted(workspace.settings)}:
        return
    for stage in OPTIONAL.keys() - known:
        _write_empty(stage, workspace)
        how = "see its log; the rest of the run is not touched by it"
        dvc(workspace.root, workspace.project, "commit", "--force", stage, log=workspace.log(stage), how=how)


def _write_empty(stage: str, workspace: Workspace) -> None:
    """Execute a stage that the settings disable, by the run's own code: in this process where that is what it has
    loaded, since one more process takes seconds.

    Raises:
        InputError: the stage fails, whatever the reason: its code may have been edited while the run went on.
    """
    code, parts = workspace.root / "components", ("layout.py", f"stages/{stage}.py")
    try:
        if code.is_dir() and code_digest(code, parts) != code_digest(parts=parts):
            command = [sys.executable, "-m", "components", stage, "--config", "params.yaml"]
            log = workspace.log(stage)
            if status := run(command, cwd=workspace.root, env=environment(workspace.project), log=log):
                raise InputError(f"it ended with exit code {status}", where=log)
        else:
            run_stage(stage, workspace.settings, workspace.layout)
    except Exception as error:
        what = f"the empty outputs of stage {stage} could not be written: {type(error).__name__}: {error}"
        how = f"undo what was edited in components/stages/{stage}.py, and repeat the command"
        raise InputError(what, where=workspace.root, how=how) from error


def _push(workspace: Workspace, kept: RecordingResult) -> RecordingResult:
    """Push outputs to the DVC remote, then the branch to the Git remote; nothing is pushed twice."""
    wanted, found = workspace.settings.record, kept.model_dump()
    if not wanted.push:
        found["notes"].append("outputs are not pushed: record.push is off")
    else:
        try:
            remote = default_remote(workspace.project)
            if remote is None:
                found["notes"].append(NO_REMOTE)
            elif kept.dvc_remote != remote:
                push_outputs(workspace)
                found["dvc_remote"] = remote
        except CorrectableError as error:
            found["problems"].append(f"outputs were not pushed: {_one_line(error)}")
    if wanted.git_remote and kept.git_remote != wanted.git_remote:
        try:
            push_branch(workspace.project, wanted.git_remote, workspace.run_id)
            found["git_remote"] = wanted.git_remote
        except CorrectableError as error:
            found["problems"].append(f"the branch was not pushed to {wanted.git_remote}: {_one_line(error)}")
    return RecordingResult.model_validate(found)


def push_outputs(workspace: Workspace) -> None:
    """Push what the run's stages made, and its inputs, to the project's default DVC remote.

    Raises:
        InputError: DVC failed; the message is DVC's.
    """
    stages = sorted(locked_in(workspace.root))
    pointers = [one.pointer for one in workspace.inputs if one.kept_by == "link"]
    tracked = [one.target for one in workspace.inputs if one.kept_by == "dvc"]
    configure(workspace.root, workspace.project)
    how = f"see that the remote can be reached, then `evenkeel run --resume {workspace.run_id}` pushes again"
    log = workspace.log("recording")
    dvc(workspace.root, workspace.project, "push", "--", *stages, *pointers, *tracked, log=log, how=how)


def read_recording(root: Path) -> RecordingResult | None:
    """Where the run in the workspace ``root`` was recorded; None where it was not.

    Raises:
        InputError: the file with it is damaged, or of another version.
    """
    path = root / ".state" / RESULT_FILE
    try:
        return RecordingResult.model_validate(read_json(path)) if path.exists() else None
    except ValidationError as error:
        how = f"`evenkeel run --resume {root.name}` writes it again"
        raise InputError("does not say where the run is recorded", where=path, how=how) from error


def _one_line(error: Exception) -> str:
    return f"{error.what}; {error.how}" if isinstance(error, CorrectableError) and error.how else str(error)
