"""Plans the next run of `nightly`, and sums it up: lines for the terminal, Markdown for the Prefect UI."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from components.config import Settings, load, substance
from components.config.pins import check_digest
from components.config.policy import CheckpointModel
from components.config.promotion import load_policy
from components.config.sources import FileSource
from components.errors import InputError
from components.files import dump_json, read_json, sha256_bytes, sha256_path
from components.health.summaries.markdown import plain
from components.layout import Layout
from components.registry import champion as champion_of
from components.registry import sound_history
from components.words import percent, plural, points
from flows.display.console import Tail
from flows.governance.policies import check_champion
from flows.governance.registry import RegistryContext, project_store, verified
from flows.host.git import succeeds
from flows.recording import read_record
from flows.retraining.joining import add_new_files, join, scan
from flows.retraining.ledger import FinishedRun, JoinedFile, Ledger, current
from flows.run.workspace import Workspace, locate

Start = Literal["base", "champion"]


@dataclass(frozen=True)
class RetrainingPlan:
    """The planned run, and how it was derived."""

    ledger: Ledger
    workspace: Workspace
    key: str
    """Stands for data, settings and code; not for the champion that is compared with or started from."""
    start: str
    """Where the policy starts from, as text."""
    champion: str | None
    joined: list[JoinedFile]
    """Files that are trained on for the first time."""
    files: list[JoinedFile]
    """All that are."""
    skipped: list[str]
    """Files of the folder that do not join, and why."""
    remarks: list[str] = field(default_factory=list)

    @property
    def previous(self) -> FinishedRun | None:
        """The finished run with the same key, and the same champion or one that it produced itself."""
        same = [row for row in self.ledger.finished_runs() if row.key == self.key]
        return next((row for row in same if row.champion == self.champion or self.promoted(row)), None)

    def promoted(self, row: FinishedRun) -> bool:
        """Whether that run produced the present champion."""
        return self.champion is not None and self.champion == row.candidate


def plan_retraining(
    project: Path,
    config: Path,
    incoming: str = "",
    start: Start = "base",
    overrides: Sequence[str] = (),
    commit: str | None = None,
    now: float | None = None,
) -> RetrainingPlan:
    """Let new data join and find the run that follows. Call it with the ledger of the configuration held.

    The same files give the same run. What joined is new until a run with it has ended. ``now`` is when the run
    began, in seconds since the epoch: what was written later than a minute before waits.

    Raises:
        InputError: settings, folder or files are not as they must be, or the champion is to be used and cannot be read.
    """
    wanted = load(config, overrides)
    if isinstance(wanted.data.source, FileSource) and not wanted.data.source.path.exists():
        how = f"put the first prompts there; the head of {config} may say how they are made"
        raise InputError("there is no source yet that data could join", where=wanted.data.source.path, how=how)
    ledger = Ledger(project, wanted.name)
    note_ended(ledger)
    remarks: list[str] = []
    data, files, skipped = _data(ledger, wanted, incoming, now or time.time(), remarks)
    begin, said, champion = _policy(project, wanted, start, remarks)
    workspace = locate(project, config, [*overrides, *data, *begin], commit)
    settled = ledger.settled
    joined = [row for row in files if row.sha256 not in settled]
    key = _key(wanted, start, workspace)
    return RetrainingPlan(ledger, workspace, key, said, champion, joined, files, skipped, remarks)


def note_ended(ledger: Ledger) -> None:
    """Record the end of runs that `evenkeel run --resume` brought to it, which knows no ledger: their files have joined
    permanently. Call it with the ledger held."""
    ended = {row.run_id for row in ledger.finished_runs()}
    for run_id, begun in ledger.started_runs().items():
        if run_id in ended:
            continue
        with suppress(InputError):  # a record that cannot be read must not keep other runs from their data
            record = read_record(ledger.project / "runs" / run_id)
            if record is not None and record.finished:
                ledger.add(begun.ended(record.outcome.candidate, record.outcome.reason))


def _key(wanted: Settings, start: Start, workspace: Workspace) -> str:
    """Digest of the run's settings and code, with the configuration's own where the registry's champion takes part."""
    tree = substance(workspace.settings)
    if wanted.evaluation.champion is None:
        tree["evaluation"].pop("champion")
    if start == "champion":
        model = wanted.policy.model
        content = sha256_path(model.path) if isinstance(model, CheckpointModel) and model.path.exists() else None
        tree["policy"]["model"] = [start, model.model_dump(mode="json"), content]
        tree["sft"]["steps"] = wanted.sft.steps
    return sha256_bytes((dump_json(tree) + workspace.snapshot.tree).encode())


def _data(
    ledger: Ledger, wanted: Settings, incoming: str, now: float, remarks: list[str]
) -> tuple[list[str], list[JoinedFile], list[str]]:
    """The overrides that make the joined file the source, the files in it, and what was left out."""
    if not incoming:
        if seen := current(ledger.seen()):
            rows = f"the rows of {plural(len(seen), 'file')} that joined are left out"
            remarks.append(f"no folder for incoming data is named: {rows}")
        return [], [], []
    folder, source = Path(incoming), wanted.data.source
    if not isinstance(source, FileSource) or source.kind != "jsonl":
        raise InputError(
            f"incoming data cannot join a source of kind {source.kind}",
            where="data.source",
            how="new rows are JSON lines: name a source of kind jsonl, or leave the folder for incoming data out",
        )
    incoming_files, skipped = scan(folder, now)
    _refuse_as_code(ledger, folder)
    digest = check_digest(source.path, source.sha256)
    skipped += add_new_files(ledger, incoming_files, digest)
    files = current(ledger.seen())
    if not files:
        return [], [], skipped
    path, joined = join(ledger, source.path, digest, files, folder)
    # The name is part of the prompts' ids: with the file's own, which changes every night, all rows would be new.
    changed = {"path": str(path), "sha256": joined, "name": source.name or source.path.stem}
    section = source.model_dump(mode="json") | changed
    return [f"data.source={json.dumps(section)}", *_trust(wanted, joined, digest, files, remarks)], files, skipped


def _refuse_as_code(ledger: Ledger, folder: Path) -> None:
    """Refuse a folder that Git does not ignore: it would be copied into every run, and each new file would change the
    code."""
    inside = folder.resolve().is_relative_to(ledger.project)
    if inside and not succeeds(ledger.project, "check-ignore", "--quiet", str(folder.resolve() / "any.jsonl")):
        how = f"add it to .gitignore: echo '/{folder.resolve().relative_to(ledger.project)}/' >> .gitignore"
        raise InputError("the folder for incoming data belongs to the code", where=folder, how=how)


def _trust(wanted: Settings, joined: str, source: str, files: Sequence[JoinedFile], remarks: list[str]) -> list[str]:
    """If every file is trusted, the joined file is trusted."""
    trusted = {entry.casefold() for entry in wanted.data.trusted}
    if not trusted:
        return []
    names = {source: "the configured source", **{row.sha256: row.name for row in files}}
    if strange := [name for digest, name in names.items() if digest not in trusted]:
        remarks.append(f"labels are audited, for data.trusted does not hold the digests of {', '.join(strange)}")
        return []
    return [f"data.trusted={json.dumps([*wanted.data.trusted, joined])}"]


def _policy(project: Path, wanted: Settings, start: Start, remarks: list[str]) -> tuple[list[str], str, str | None]:
    """The overrides for start and comparison, the start as text, and the champion's digest."""
    store = project_store(project, wanted)
    alias = champion_of(store)
    if alias is None:
        if start == "champion":
            remarks.append("there is no champion yet: the run starts from the base")
        return [], "the base", None
    check_champion(RegistryContext(project, store, load_policy(project)), sound_history(store))
    folder: dict[str, Any] = {"path": str(verified(project, store, alias.digest)), "sha256": alias.digest}
    overrides = [] if wanted.evaluation.champion else [f"evaluation.champion={json.dumps(folder)}"]
    if wanted.evaluation.champion:
        remarks.append("the configuration names a champion of its own (evaluation.champion): that is compared with")
    if start == "base":
        return overrides, "the base", alias.digest
    model = json.dumps({"kind": "checkpoint", **folder})
    return [*overrides, f"policy.model={model}", "sft.steps=0"], f"the champion {alias.digest[:12]}", alias.digest


FILES_SHOWN = 20


def summary_before(plan: RetrainingPlan) -> list[str]:
    """What is known before the run: one line each."""
    lines = [
        f"{row.name}: {plural(row.rows, 'row')} joined{_replaced_version(plan, row)}"
        for row in plan.joined[:FILES_SHOWN]
    ]
    if len(plan.joined) > FILES_SHOWN:
        rest = plan.joined[FILES_SHOWN:]
        lines.append(f"{plural(len(rest), 'file')} more: {plural(sum(row.rows for row in rest), 'row')} joined")
    if not plan.joined:
        lines.append("no data joined")
    compared = f", compared with the champion {plan.champion[:12]}" if plan.champion else ""
    return [*lines, *plan.skipped, *plan.remarks, f"starts from {plan.start}{compared}"]


def _replaced_version(plan: RetrainingPlan, row: JoinedFile) -> str:
    before = {one.sha256: one for one in plan.ledger.seen()}
    if row.replaces not in before:
        return ""
    earlier = before[row.replaces]
    known_as = "" if earlier.name == row.name else f", {earlier.name},"
    return f", in place of an earlier version{known_as} of {plural(earlier.rows, 'row')}"


def unchanged_summary(plan: RetrainingPlan, earlier: FinishedRun) -> str:
    """Why there is nothing to do."""
    promoted = ", the champion by now" if plan.promoted(earlier) else ""
    answer = f"candidate {earlier.candidate[:12]}{promoted}" if earlier.candidate else "no candidate"
    return f"nothing new since {earlier.at}: run {earlier.run_id} had the same data, settings and code ({answer})"


def summary_after(workspace: Workspace, candidate: str | None, reason: str) -> list[str]:
    """What was executed, how the result compares with the champion, and the answer."""
    states = {event["stage"]: event["state"] for event in Tail(workspace.progress).read() if "state" in event}
    by_state: dict[str, list[str]] = {}
    for stage, state in states.items():
        by_state.setdefault(state, []).append(stage)
    words = {"done": "executed", "cached": "unchanged"}
    lines = [f"{words.get(state, state)}: {', '.join(stages)}" for state, stages in by_state.items()]
    if compared := against_champion(workspace.layout):
        lines.append(compared)
    return [*lines, f"candidate {candidate}" if candidate else f"no candidate: {reason}"]


def against_champion(layout: Layout) -> str:
    """The gain over the champion in one line; empty where nothing was compared."""
    evaluation: Mapping[str, Any] = read_json(layout.evaluation) if layout.evaluation.exists() else {}
    if "champion" not in evaluation:
        return ""
    sides = [percent(evaluation[side]["pass_at_1"]) for side in ("champion", "trained")]
    gain = evaluation["gain_over_champion"]
    if gain is None:
        return "the champion could not be compared with: no prompt was scorable under both"
    interval = f"95 % interval {points(gain['low'])} to {points(gain['high'])}"
    return f"pass@1 {sides[1]} against the champion's {sides[0]}: {points(gain['mean'])} points, {interval}"


def markdown(title: str, lines: list[str]) -> str:
    """A heading and a list; what files are called and what a stage said is shown as it is."""
    return "\n".join([f"# {title}", "", *(f"- {plain(line)}" for line in lines), ""])
