"""`run.json`: what ran, on what, how it ended, and every figure."""

from __future__ import annotations

import contextlib
import json
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from components.config.base import Section
from components.config.documents import foreign
from components.errors import InputError
from components.files import dump_json, read_json, read_text, write_text
from components.registry.clock import stamp, utc_now
from flows.host.dvc import locked_in
from flows.host.git import RECORD
from flows.run.workspace import Workspace
from flows.starting.project import version_of


class Machine(Section):
    """The machine of a run, and the packages that `constraints.txt` pins."""

    python: str
    platform: str
    cpu: str
    packages: dict[str, str]


def this_machine(project: Path) -> Machine:
    """The present machine."""
    return Machine(
        python=platform.python_version(),
        platform=platform.platform(),
        cpu=cpu_model(),
        packages=packages(project / "constraints.txt"),
    )


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor; its architecture where the system does not tell."""
    try:
        named = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        named = None
    return named[1].strip() if named else platform.processor() or platform.machine()


def packages(constraints: Path) -> dict[str, str]:
    """Installed versions of what the file pins; what is not installed is left out."""
    if not constraints.is_file():
        return {}
    names = re.findall(r"^([\w.\-]+)==", constraints.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: found for name in sorted(names, key=str.lower) if (found := version_of(name))}


def differences(recorded: Machine, found: Machine) -> list[str]:
    """What is not the same on both, a line each."""
    pairs = [
        ("python", recorded.python, found.python),
        ("platform", recorded.platform, found.platform),
        ("processor", recorded.cpu, found.cpu),
    ]
    for name in sorted(recorded.packages | found.packages):
        before, now = (machine.packages.get(name, "not installed") for machine in (recorded, found))
        pairs.append((name, before, now))
    return [f"{what}: {before}, here {now}" for what, before, now in pairs if before != now]


LOCK, PIPELINE = "dvc.lock", "dvc.yaml"


class StageRecord(Section):
    """How a stage ended when it was last executed, or ``cached`` where it was taken over; and how long that took."""

    state: str
    seconds: float


class OutcomeRecord(Section):
    """How the run ended; ``unfinished`` while it works, and for ever where it was killed outright."""

    state: Literal["unfinished", "candidate", "no candidate", "failed", "stopped"]
    candidate: str | None = None
    reason: str = ""
    failed_stage: str | None = None


class InputRecord(Section):
    """One input, by its path in the workspace."""

    path: str
    sha256: str
    kept_by: Literal["git", "dvc", "link"]


class RunRecord(Section):
    """One run. Times are UTC in ISO format."""

    format: Literal[1] = 1
    run_id: str
    config: str
    recipe: str = ""
    overrides: list[str]
    commit: str
    tree: str
    began: str
    ended: str | None = None
    stages: dict[str, StageRecord] = Field(default_factory=dict)
    outcome: OutcomeRecord
    metrics: dict[str, float | None] = Field(default_factory=dict)
    """Every number of the metric files, by file and dotted key."""
    digests: dict[str, str] = Field(default_factory=dict)
    """Output -> its MD5 in `dvc.lock`."""
    inputs: list[InputRecord] = Field(default_factory=list)
    machine: Machine
    tolerance: float = 0.0
    flow_run_id: str | None = None

    @property
    def finished(self) -> bool:
        """Whether the run is complete, with a candidate or without."""
        return self.outcome.state in ("candidate", "no candidate")


def new_record(workspace: Workspace, flow_run_id: str | None) -> RunRecord:
    """The record of a run that is about to work."""
    return RunRecord(
        run_id=workspace.run_id,
        config=workspace.request.config,
        recipe=workspace.request.recipe,
        overrides=list(workspace.request.overrides),
        commit=workspace.snapshot.commit,
        tree=workspace.snapshot.tree,
        began=stamp(utc_now()),
        outcome=OutcomeRecord(state="unfinished"),
        inputs=[InputRecord(path=one.path, sha256=one.sha256, kept_by=one.kept_by) for one in workspace.inputs],
        machine=this_machine(workspace.root),
        tolerance=workspace.settings.record.tolerance,
        flow_run_id=flow_run_id,
    )


def finish_record(
    record: RunRecord, workspace: Workspace, outcome: OutcomeRecord, stages: Mapping[str, Any]
) -> RunRecord:
    """The record with how the run ended, and everything that it left."""
    fields = {
        "ended": stamp(utc_now()),
        "outcome": outcome,
        "stages": dict(stages),
        "metrics": numbers(workspace.root),
        "digests": {path: md5 for outs in locked_in(workspace.root).values() for path, md5 in outs.items()},
    }
    return record.model_copy(update=fields)


def stages_since(progress: Path, offset: int, before: RunRecord | None) -> dict[str, StageRecord]:
    """How each stage ended, from the lines of the progress file from byte ``offset`` on.

    A stage that was only taken over now keeps its entry in the record of an earlier attempt at this run.
    """
    known = before.stages if before else {}
    latest = {event["stage"]: event for event in _events(progress, offset) if "state" in event}
    found = {name: StageRecord(state=last["state"], seconds=last["seconds"]) for name, last in latest.items()}
    executed = {name for name, stage in found.items() if stage.state != "cached"}
    kept = {name: stage for name, stage in known.items() if stage.state == "done" and name not in executed}
    return {**known, **found, **kept}


def _events(path: Path, offset: int) -> Iterator[dict[str, Any]]:
    """Whole lines; half a line of a killed stage is none."""
    if path.exists():
        for line in path.read_bytes()[offset:].splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)


def uncached(root: Path, kinds: tuple[str, ...] = ("metrics", "plots", "outs")) -> list[str]:
    """The outputs that Git keeps and DVC's cache does not, as `dvc.yaml` declares them, where they exist."""
    stages = foreign(read_text(root / PIPELINE), PIPELINE).get("stages", {})
    entries = [entry for stage in stages.values() for kind in kinds for entry in stage.get(kind, [])]
    named = [(path, options) for entry in entries if isinstance(entry, dict) for path, options in entry.items()]
    return sorted(path for path, options in named if options.get("cache") is False and (root / path).is_file())


def numbers(root: Path) -> dict[str, float | None]:
    """Every number of a workspace's metric files, by the file's name and the dotted key; null where it is none."""
    found: dict[str, float | None] = {}
    for path in uncached(root, ("metrics",)):
        for key, value in leaves(read_json(root / path), Path(path).stem):
            if value is None or is_number(value):
                found[key] = value
    return found


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Every value of a JSON tree that holds no others, with its dotted key."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from leaves(below, f"{key}.{name}")
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from leaves(below, f"{key}.{number}")
    else:
        yield key, value


def write_record(root: Path, record: RunRecord) -> None:
    """Write `run.json` into the workspace ``root``."""
    write_text(root / RECORD, dump_json(record.model_dump(mode="json")))


def read_record(root: Path) -> RunRecord | None:
    """The record in a workspace; None before the run has begun. Another run's, out of the code, is none."""
    if not (root / RECORD).exists():
        return None
    record = parse_record(read_json(root / RECORD), str(root / RECORD))
    return record if record.run_id == root.name else None


def parse_record(value: Any, where: str) -> RunRecord:
    """Validate a record.

    Raises:
        InputError: it is not one of this format.
    """
    try:
        return RunRecord.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        how = "a newer version may have written it"
        raise InputError(f"not a run's record: {key}: {first['msg']}", where=where, how=how) from error
