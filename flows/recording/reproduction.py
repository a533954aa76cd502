"""A recorded run, executed again from its branch in `.state/reproductions/<run-id>`; nothing comes from the cache. Its
outputs are compared with the record by their digests, metrics number by number."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from components.config import Settings, load
from components.config.documents import foreign
from components.config.record import BudgetSettings
from components.directories import write_directory
from components.errors import EXIT_NO_CANDIDATE, InputError
from components.files import os_errors, read_json, read_text, write_json
from components.opening import impossible
from components.stages import wanted
from flows.host.branches import branch_of
from flows.host.dvc import configure, declared, locked, locked_in
from flows.host.git import RECORD, at_commit, check_out, git, succeeds
from flows.host.processes import take_over
from flows.recording.record import LOCK, PIPELINE, RunRecord, differences, is_number, leaves, parse_record, this_machine
from flows.run.inputs import fetch, recorded_inputs
from flows.run.stages import StageFailed, StageResult, execute, reproduce
from flows.run.workspace import Workspace

OUTCOME = "outcome"
DIGEST = re.compile(r"[0-9a-f]{32,64}")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference from the record: an output, or a number of a metric file."""

    stage: str
    what: str
    recorded: str
    found: str


@dataclass
class Comparison:
    """All that was compared, and what differs."""

    run_id: str
    commit: str
    tolerance: float
    outputs: dict[str, int] = field(default_factory=dict)
    """Stage -> how many outputs were compared."""
    metrics: dict[str, int] = field(default_factory=dict)
    """Stage -> how many values of metric files were compared."""
    differences: list[Difference] = field(default_factory=list)
    machine: list[str] = field(default_factory=list)
    """What is different about this machine, a line each."""

    @property
    def equal(self) -> bool:
        return not self.differences

    @property
    def exit_code(self) -> int:
        """0 equal, 3 not."""
        return 0 if self.equal else EXIT_NO_CANDIDATE

    def of(self, stage: str) -> list[Difference]:
        """What differs in one stage."""
        return [one for one in self.differences if one.stage == stage]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {**asdict(self), "equal": self.equal}


def compare_stage(into: Comparison, stage: str, project: Path, root: Path, recorded_state: str, state: str) -> None:
    """Add one stage that was executed again in ``root``.

    With a tolerance digests are not compared, including those inside metric files: digests have no nearness.
    """
    into.outputs[stage] = into.metrics[stage] = 0
    if (recorded_state == "refused") != (state == "refused"):
        into.differences.append(Difference(stage, OUTCOME, recorded_state or "not executed", state))
        return
    declaring = foreign(read_text(root / PIPELINE), PIPELINE)["stages"][stage]
    for path in (name for name in declared(declaring, "metrics") if (root / name).exists()):
        _compare_metrics(into, stage, path, project, root)
    before = locked(git(project, "show", f"{into.commit}:{LOCK}")).get(stage, {})
    after = locked_in(root).get(stage, {})
    if into.tolerance == 0:
        seen = {one.what.partition(" ")[0] for one in into.of(stage)}
        for path in sorted({*before, *after}):
            into.outputs[stage] += 1
            old, new = before.get(path, "nothing"), after.get(path, "nothing")
            if old != new and path not in seen:
                into.differences.append(Difference(stage, path, old, new))


def _compare_metrics(into: Comparison, stage: str, path: str, project: Path, root: Path) -> None:
    recorded = f"{into.commit}:{path}"
    if not succeeds(project, "cat-file", "-e", recorded):
        into.differences.append(Difference(stage, path, "nothing", "a file"))
        return
    before = dict(leaves(json.loads(git(project, "show", recorded)), ""))
    after = dict(leaves(read_json(root / path), ""))
    for key in sorted({*before, *after}):
        old, new = before.get(key, "nothing"), after.get(key, "nothing")
        if into.tolerance and _is_digest(old) and _is_digest(new):
            continue
        into.metrics[stage] += 1
        if not agree(into.tolerance, old, new):
            into.differences.append(Difference(stage, f"{path} {key.removeprefix('.')}", str(old), str(new)))


def agree(tolerance: float, old: Any, new: Any) -> bool:
    """Whether two values count as equal: numbers within the tolerance, absolutely or relatively."""
    if tolerance and is_number(old) and is_number(new):
        return math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance)
    return bool(old == new)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


RESULT = "comparison.json"


@dataclass(frozen=True)
class Reproduction(Workspace):
    """The branch of a run, checked out to be executed again. ``snapshot`` is the branch's head."""

    @property
    def root(self) -> Path:
        return self.project / ".state" / "reproductions" / self.run_id

    @property
    def evaluations(self) -> Path:
        """Its own folder: a reproduction must not reuse the answers of the run that it checks."""
        return self.layout.evaluations

    @property
    def _lock_file(self) -> Path:
        return self.project / ".state" / "locks" / f"reproduction-{self.run_id}"


def find_branch(project: Path, run_id: str) -> tuple[str, str]:
    """The full id and the ref of a recorded run; its own branch before that of a remote.

    Raises:
        InputError: no branch, or more than one, begins like that.
    """
    refs = git(project, "for-each-ref", "--format=%(refname)", "refs/heads/runs/", "refs/remotes/").splitlines()
    found: dict[str, str] = {}
    for ref in sorted(refs):  # heads come before remotes
        name = ref.partition("/runs/")[2]
        if name and run_id and name.startswith(run_id):
            found.setdefault(name, ref)
    if run_id in found:
        return run_id, found[run_id]
    if len(found) == 1:
        return next(iter(found.items()))
    if found:
        raise InputError(f"more than one run begins with {run_id!r}: {', '.join(found)}", how="say more of the id")
    if run_id and not impossible(run_id) and (project / "runs" / run_id).is_dir():
        how = f"evenkeel run --resume {run_id}"
        raise InputError(f"{run_id} has a workspace, but it never came to its end", where=project / "runs", how=how)
    remotes = git(project, "remote").split() or ["REMOTE"]
    how = f"git fetch {remotes[0]} 'refs/heads/runs/*:refs/remotes/{remotes[0]}/runs/*'"
    raise InputError(f"there is no branch {branch_of(run_id or 'RUN-ID')} here", where=project, how=how)


@contextmanager
def checked_out(project: Path, run_id: str, wait: Callable[[str], None] | None = None) -> Iterator[Reproduction]:
    """A run's branch in a folder of its own, with its inputs there, held against others as `Workspace.lock` holds it.

    Raises:
        InputError: the branch, its record or an input is missing, or another process is at it.
    """
    name, ref = find_branch(project, run_id)
    bare = Reproduction(project, name, Settings(), at_commit(project, ref))
    recorded_in(bare)
    with bare.lock(wait):
        take_over(project)
        _make(bare)
        settings = load(bare.root / "params.yaml")
        inputs = recorded_inputs(settings, project, bare.snapshot.commit)
        for one in inputs:
            if one.kept_by == "link":
                how = "record the run again where its input is: evenkeel run --resume"
                raise InputError("an input of this run was not recorded with it", where=one.path, how=how)
        fetch(bare.root, project, [one for one in inputs if one.kept_by == "dvc"], log=bare.log("inputs"))
        unlimited = settings.model_copy(update={"budget": BudgetSettings()})  # the limit was the run's own
        yield replace(bare, settings=unlimited, inputs=inputs)


def _make(reproduction: Reproduction) -> None:
    """Check the branch out, replacing the folder of an earlier reproduction."""

    def fill(target: Path) -> None:
        check_out(reproduction.project, reproduction.snapshot.commit, target)
        configure(target, reproduction.project)

    with os_errors("remove", reproduction.root):
        shutil.rmtree(reproduction.root, ignore_errors=True)
    write_directory(reproduction.root, fill)


def recorded_in(reproduction: Reproduction) -> RunRecord:
    """The record on the branch.

    Raises:
        InputError: it holds none, or one that cannot be read.
    """
    commit = reproduction.snapshot.commit
    try:
        text = git(reproduction.project, "show", f"{commit}:{RECORD}")
    except InputError as error:
        raise InputError("this branch holds no run's record", where=commit[:12], how="name another") from error
    try:
        return parse_record(json.loads(text), f"{commit[:12]}:{RECORD}")
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}", where=f"{commit[:12]}:{RECORD}") from error


EXECUTE = partial(reproduce, force=True)
"""A stage, executed whatever the cache knows."""


def reproduce_run(reproduction: Reproduction, run: Callable[[Workspace, str], StageResult] = EXECUTE) -> Comparison:
    """Execute every stage that the run consisted of, in order, and compare each with the record.

    Raises:
        InputError: a stage failed that had not failed.
    """
    record = recorded_in(reproduction)
    here = differences(record.machine, this_machine(reproduction.root))
    found = Comparison(reproduction.run_id, reproduction.snapshot.commit, record.tolerance, machine=here)
    for stage in wanted(reproduction.settings):
        before = record.stages[stage].state if stage in record.stages else ""
        try:
            result = run(reproduction, stage)
        except StageFailed as failure:
            how = "the machine may differ from the recorded one in something that matters:" if here else None
            what = f"the run cannot be reproduced here: {failure}"
            raise InputError(what, where=reproduction.root, how=how and "\n         ".join([how, *here])) from failure
        compare_stage(found, stage, reproduction.project, reproduction.root, before, result.state)
        if result.state == "refused":
            execute(reproduction, "report")
            break
    gate = reproduction.layout.gate
    failed = result.state == "refused" or (gate.exists() and read_json(gate)["result"] == "fail")
    state = "no candidate" if failed else "candidate"  # compared whatever the tolerance of numbers
    if state != record.outcome.state and not any(one.what == OUTCOME for one in found.differences):
        found.differences.append(Difference("gate", OUTCOME, record.outcome.state, state))
    write_json(reproduction.layout.state / RESULT, found.to_dict())
    return found
