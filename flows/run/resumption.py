"""Going on with a run from its workspace: with its settings and its code, whatever the present tree holds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from components.config import load
from components.errors import InputError
from components.files import read_text, write_text
from flows.host.branches import branch_of
from flows.host.git import RECORD, at_commit, check_git_remote, git
from flows.recording import read_record
from flows.run.inputs import recorded_inputs
from flows.run.workspace import UNKNOWN_REQUEST, RunRequest, Workspace, name_of


def refuse_with_resume(dashes: str, **given: bool) -> None:
    """A resumed run keeps its settings: refuse other arguments, ``given`` by name, instead of ignoring them. Names
    begin with ``dashes`` where they are typed: nothing in a form."""
    refused = ", ".join(f"{dashes}{name}" for name, is_there in given.items() if is_there)
    if refused:
        where, how = f"{dashes}resume", "leave it out; a run with other settings is a run of its own"
        raise InputError(f"{where} goes on with a run as it was begun, without {refused}", where=where, how=how)


def reopen(project: Path, run_id: str, overrides: Sequence[str] = ()) -> Workspace:
    """The workspace of a run that was begun. The first characters of its id are enough where no other has the same.
    ``overrides`` are logistics that are others from now on: a higher limit, another address.

    Raises:
        InputError: there is no such workspace (the message lists those that can be resumed), its settings
            were edited, or an override would make it another run.
    """
    root = _find(project, run_id)
    params = root / "params.yaml"
    settings, taken = load(params), at_commit(root, "HEAD")
    if name_of(settings, taken.tree) != root.name:
        how = "undo the change, or start a run of its own with `evenkeel run --set`"
        raise InputError("the settings of this run were edited", where=params, how=how)
    if overrides:
        settings = load(params, overrides)
        check_git_remote(project, settings.record.git_remote)
        if name_of(settings, taken.tree) != root.name:
            what = f"a run that goes on keeps what it computes; this is another run: {', '.join(overrides)}"
            raise InputError(what, where="--resume", how="leave that out, or start a run of its own without --resume")
    record = read_record(root)
    request = RunRequest(record.config, tuple(record.overrides), record.recipe) if record else UNKNOWN_REQUEST
    return Workspace(project, root.name, settings, taken, recorded_inputs(settings, project, taken.commit), request)


def note_flow_run(project: Path, flow_run_id: str | None, run_id: str) -> None:
    """Note which run a flow run began: the run's own record names only the flow run that had it last."""
    if flow_run_id:
        write_text(_flow_run_file(project, flow_run_id), run_id)


def run_of_flow_run(project: Path, flow_run_id: str | None) -> str:
    """The run that an earlier attempt of this flow run began, or nothing: a retry goes on with it, whatever the present
    tree contains and whatever other flow run had the run in between."""
    if not flow_run_id or not (path := _flow_run_file(project, flow_run_id)).exists():
        return ""
    run_id = read_text(path)
    return run_id if (project / "runs" / run_id / "params.yaml").exists() else ""


def _flow_run_file(project: Path, flow_run_id: str) -> Path:
    return project / ".state" / "flow-runs" / flow_run_id


def _find(project: Path, run_id: str) -> Path:
    if not run_id:
        raise InputError("no run is named", where="--resume", how=_resumable(project))
    there = [root for root in workspaces(project) if root.name.startswith(run_id)]
    exact = [root for root in there if root.name == run_id]
    if len(exact or there) == 1:
        return (exact or there)[0]
    if there:
        names = ", ".join(root.name for root in there)
        raise InputError(f"more than one run begins with {run_id!r}: {names}", where=project / "runs", how="say more")
    branches = git(project, "for-each-ref", "--format=%(refname)", f"refs/heads/{branch_of(run_id)}*", "refs/remotes")
    if any(f"/{branch_of(run_id)}" in line for line in branches.splitlines()):
        how = f"evenkeel reproduce {run_id}"
        raise InputError(f"the workspace of {run_id} is gone, but its branch is there", where=project / "runs", how=how)
    raise InputError(f"no run named {run_id!r}", where=project / "runs", how=_resumable(project))


def workspaces(project: Path) -> list[Path]:
    """The folders of all runs of the project, the one that was used last first."""
    found = [path.parent for path in (project / "runs").glob("*/params.yaml") if not path.parent.name.startswith(".")]
    return sorted(found, key=_last_used, reverse=True)


def _last_used(root: Path) -> float:
    with suppress(OSError):  # it never began, or is being removed
        return (root / RECORD).stat().st_mtime
    return 0.0


def _resumable(project: Path) -> str:
    """The incomplete runs, and how each of them ended."""
    lines = []
    for root in workspaces(project):
        record, ended = None, "never began"
        with suppress(InputError):  # a record that cannot be read must not keep anybody from other runs
            record = read_record(root)
        if record is not None:
            stage = f" in stage {record.outcome.failed_stage}" if record.outcome.failed_stage else ""
            ended = f"{record.outcome.state}{stage}, {record.ended or f'begun {record.began}'}"
        if record is None or not record.finished:
            lines.append(f"\n    {root.name}  {ended}")
    return f"name one that did not come to its end:{''.join(lines)}" if lines else "no run here can be resumed"
