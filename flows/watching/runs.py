"""The runs of a project, read from their workspaces: without a server, and without writing anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from components.config import Settings, load
from components.errors import EvenkeelError, InputError
from components.files import read_text
from components.processes.living import lives
from components.stages import STAGES, wanted
from flows.display.console import Board, StageView, Tail
from flows.governance.registry import decision_on, name_of, project_store
from flows.host.processes import OWNER_VARIABLE, mark_of, marked
from flows.run.resumption import workspaces
from flows.run.workspace import RunFolder
from flows.watching.execution import Execution, read

DECIDED = {"promoted": "approved", "rolled back": "approved", "rejected": "rejected"}


@dataclass(frozen=True)
class RunView(RunFolder):
    """One run. Everything is read on first use: settings take a tenth of a second."""

    @cached_property
    def execution(self) -> Execution | None:
        """Who runs it, or ran it last; None where that was never recorded, or the record is damaged."""
        try:
            return read(self.root)
        except InputError:
            return None

    @cached_property
    def settings(self) -> Settings | None:
        """Its settings; None where they are of another version."""
        try:
            return load(self.layout.params)
        except EvenkeelError:
            return None

    @property
    def registry(self) -> str | None:
        """The registry that its candidate is in, as `flows.governance.registry` names it; None where there is none."""
        if self.settings is None or self.execution is None or not self.execution.candidate:
            return None
        return name_of(self.settings.registry)

    @cached_property
    def board(self) -> Board:
        """Every stage there is, in order, as the latest execution left it."""
        board = Board.of(STAGES)
        for event in Tail(self.progress).read():
            board.stages.setdefault(event["stage"], StageView(event["stage"]))
            board.apply(event)
        return board

    @cached_property
    def stages(self) -> list[StageView]:
        """The stages that the run consists of, in order."""
        names = wanted(self.settings) if self.settings else STAGES
        return [view for view in self.board.stages.values() if view.name in names or view.state != "waiting"]

    @cached_property
    def stage(self) -> StageView | None:
        """The stage that runs, or the last one that did."""
        begun = [view for view in self.board.stages.values() if view.state != "waiting"]
        return self.board.running or (begun[-1] if begun else None)

    @property
    def running(self) -> bool:
        return self.execution is not None and self.execution.alive

    @cached_property
    def state(self) -> str:
        """One word: how far it is, or how it ended."""
        if self.execution is None:
            return "unknown"
        if self.execution.standing == "candidate":
            return self._decision() or "candidate"
        return self.execution.standing

    def _decision(self) -> str | None:
        """What a person decided about the candidate. A registry out of reach is no reason to show nothing."""
        if self.settings is None or self.execution is None or self.execution.candidate is None:
            return None
        try:
            record = decision_on(project_store(self.project, self.settings), self.execution.candidate)
        except (EvenkeelError, OSError):
            return None
        return DECIDED[record.outcome] if record else None

    @property
    def status_line(self) -> str:
        """The live line of a run that works, or that was stopped; else why it ended, or how healthy it was."""
        if self.state in ("running", "stopped", "dead"):
            return self.stage.note if self.stage else ""
        if self.execution is not None and self.execution.reason:
            return " ".join(line.strip().removeprefix("- ") for line in self.execution.reason.splitlines())
        return self.headline

    @property
    def headline(self) -> str:
        """The run's health in one sentence, from its report."""
        try:
            text = read_text(self.layout.verdict)
        except InputError:
            return ""
        return next((line.strip("*") for line in text.splitlines() if line.startswith("**")), "")

    @property
    def began(self) -> datetime | None:
        return datetime.fromisoformat(self.execution.began) if self.execution else None

    @property
    def took(self) -> float | None:
        """Seconds of the latest execution so far or in all; of one that was killed, until it was last heard of."""
        if self.execution is None or self.began is None:
            return None
        if self.execution.ended is not None:
            end = datetime.fromisoformat(self.execution.ended)
        elif self.execution.alive:
            end = datetime.now(UTC)
        else:  # its flow or a stage last wrote then
            files = (self.progress, self.layout.state / "execution.json")
            last = max((path.stat().st_mtime for path in files if path.exists()), default=0.0)
            end = datetime.fromtimestamp(last, UTC)
        return max(0.0, (end - self.began).total_seconds())

    def processes(self) -> list[psutil.Process]:
        """Its processes on this machine: the flow's process first, then its descendants."""
        execution = self.execution
        if execution is None or not execution.here:
            return []
        start, end = f"{execution.pid}:", f":{self.project}"
        marks = ((one, mark_of(one, OWNER_VARIABLE)) for one in marked(OWNER_VARIABLE))
        family = [one for one, mark in marks if mark.startswith(start) and mark.endswith(end)]
        own = [psutil.Process(execution.pid)] if execution.ended is None and execution.alive else []
        return [*own, *sorted((one for one in family if one.pid != execution.pid and lives(one)), key=lambda p: p.pid)]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        execution, stage = self.execution, self.stage
        return {
            **{name: getattr(execution, name, None) for name in ("flow", "began", "ended", "candidate", "flow_run")},
            "run": self.run_id,
            "state": self.state,
            "stage": stage.name if stage else None,
            "done": stage.done if stage else None,
            "total": stage.total if stage else None,
            "says": self.status_line,
            "seconds": self.took,
            "reason": execution.reason if execution else "",
            "pid": execution.pid if execution and execution.alive else None,
            "workspace": str(self.root),
        }


def all_runs(project: Path) -> list[RunView]:
    """Every run that has a workspace, the one that began last first."""
    found = [RunView(project, root.name) for root in workspaces(project)]
    return sorted(found, key=lambda run: (run.execution.began if run.execution else "", run.run_id), reverse=True)


def find_run(project: Path, name: str) -> RunView:
    """The run of this id, or the only one whose id begins so: none, or several, are an `InputError`. An empty name, as
    of an unset variable, is none."""
    runs = all_runs(project)
    begin_so = [run for run in runs if name and run.run_id.startswith(name)]
    matching = [run for run in begin_so if run.run_id == name] or begin_so
    if len(matching) == 1:
        return matching[0]
    what = f"{len(matching)} runs begin with {name!r}" if matching else f"no run {name!r}"
    listed = matching or runs
    names = ", ".join(run.run_id for run in listed[:10]) + (f", and {len(listed) - 10} more" if listed[10:] else "")
    how = f"name one of: {names or 'there is none yet; `evenkeel run` makes one'}"
    raise InputError(what, where=project / "runs", how=how)
