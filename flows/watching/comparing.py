"""`evenkeel compare`: runs of a project, read for `components.compare`, and the short table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from components.compare import Entry, StageTime, lettered
from components.compare.evaluation import pairs, score_of
from components.config import load
from components.config.evaluation import TEST
from components.errors import InputError
from components.layout import Layout
from components.report import load_run
from components.report.gains import sampled as gain_of
from components.types import StepRecord
from components.words import number, percent, points
from components.working import clock
from flows.budget.spending import spent
from flows.display.console import Tail
from flows.display.output import field, plain_table, say
from flows.recording import RunRecord, read_record
from flows.watching.runs import RunView, find_run
from flows.watching.status import STYLES


def entries(project: Path, names: Sequence[str]) -> list[Entry]:
    """The runs of these names, each an id, its beginning, or a folder.

    Raises:
        InputError: there is no such run, one is named twice, or its files cannot be read.
    """
    found = [_find(project, name) for name in names]
    roots = [run.root.resolve() for run in found]
    if twice := [run.run_id for run in found if roots.count(run.root.resolve()) > 1]:
        raise InputError("a run is named twice", where=twice[0], how="name every run once")
    return lettered([_entry(run) for run in found])


def _find(project: Path, name: str) -> RunView:
    folder = Path(name)
    if (folder / "params.yaml").is_file() and folder.resolve().parent.name == "runs":
        return RunView(folder.resolve().parents[1], folder.resolve().name)
    return find_run(project, name)


def _entry(view: RunView) -> Entry:
    layout, run = view.layout, load_run(load(view.layout.params), view.layout)
    record, taken = read_record(view.root), spent(layout)
    if run.records is None:
        rows = Tail(layout.state / "train" / layout.records.name).read()  # of a training that has not ended
        run = replace(run, records=[StepRecord(**row) for row in rows] or None)
    return Entry(
        name=view.run_id,
        state=view.state,
        run=run,
        commit=record.commit if record else "",
        processor=record.machine.cpu if record else "",
        stages=_stages(view, record),
        hours=taken.hours or None,
        gpu_hours=taken.gpu_hours,
        kept=[Layout(view.project).evaluations, layout.evaluations],
    )


def _stages(view: RunView, record: RunRecord | None) -> dict[str, StageTime]:
    """Of every stage that was begun; where the latest attempt found it done, what the attempt took that did it."""
    done = {name: one for name, one in record.stages.items() if one.state == "done"} if record else {}
    found = {}
    for stage in view.stages:
        if stage.state == "cached" and stage.name in done:
            found[stage.name] = StageTime("done", done[stage.name].seconds)
        elif stage.state == "running":
            found[stage.name] = StageTime("running" if view.running else "interrupted", None)
        elif stage.state != "waiting":
            found[stage.name] = StageTime(stage.state, stage.seconds)
    return found


def show(console: Console, found: Sequence[Entry]) -> None:
    """A row a run, and a sentence for every one but the first, against that."""
    figures = ("steps", "pass@1", "gain", "completions", "took")
    table = plain_table("run", "state", *figures, right=figures, no_wrap=("run", "state", *figures))
    for entry in found:
        state = field(entry.state, STYLES.get(entry.state, "dim"))
        table.add_row(field(f"{entry.letter} {entry.name}"), state, *_figures(entry))
    console.print(table)
    say(console, *(pair.sentence for pair in pairs(found)[: len(found) - 1]))


def _figures(entry: Entry) -> tuple[str, ...]:
    score, took = score_of(entry, TEST), entry.seconds
    gain = gain_of(entry.run.measured, "sft", entry.run.settings.evaluation.small)
    accuracy, gained = percent(score.share if score else None), points(gain.mean if gain else None)
    return str(entry.steps), accuracy, gained, number(entry.sampled.completions), "" if took is None else clock(took)
