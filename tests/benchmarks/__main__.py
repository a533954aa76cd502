"""``python -m tests.benchmarks run|page|cell``; ``make bench`` is ``run`` and then ``page``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated, cast

import typer

from components.errors import CorrectableError, InputError
from components.files import write_text
from tests.benchmarks.audit import figures as holes
from tests.benchmarks.ending import interrupted_by_signals
from tests.benchmarks.gap import figures as gap
from tests.benchmarks.horizon import figures as horizon
from tests.benchmarks.lines import rows_of
from tests.benchmarks.pages import filled, pages
from tests.benchmarks.results import Results
from tests.benchmarks.running import measure_cell, measure_section
from tests.benchmarks.schedules import figures as schedules
from tests.benchmarks.section import Scale
from tests.benchmarks.sections import SECTIONS
from tests.benchmarks.styles import figures as styles
from tests.benchmarks.triage import figures as triage
from tests.benchmarks.work import Work
from tests.code_graph import ROOT

RESULTS = ROOT / "docs" / "results"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Check = Annotated[bool, typer.Option(help="Only say what differs.")]
Folder = Annotated[Path, typer.Option("--results", help="Where the result files lie.")]


@app.command()
def run(
    names: Annotated[list[str] | None, typer.Argument(help="Sections; all of them if none is named.")] = None,
    results: Folder = RESULTS,
    smoke: Annotated[bool, typer.Option(help="Only show that it runs, in a minute or two.")] = False,
    force: Annotated[bool, typer.Option(help="Discard earlier measurements.")] = False,
    work: Annotated[Path | None, typer.Option(help="For checkpoints and data; temporary if not named.")] = None,
) -> None:
    """Measure sections. What is measured already stays; a call that was ended goes on with the cell it was at.

    What stays though the code has changed is named: nothing is measured again unasked.
    """
    interrupted_by_signals()
    if smoke and results == RESULTS:
        raise InputError("figures of a smoke run mean nothing", where="--smoke", how="name another folder: --results")
    for name in names or SECTIONS:
        if name not in SECTIONS:
            raise InputError(f"there is no section {name!r}", where="run", how=f"one of {', '.join(SECTIONS)}")
        path, scale = results / f"{name}.json", cast(Scale, "smoke" if smoke else "full")
        if not smoke and (what := SECTIONS[name].lacking()):
            print(f"{name}: not measured: {what}", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="evenkeel-bench-") as temporary:
            folder = (work or Path(temporary)) / name
            if force:
                path.unlink(missing_ok=True)
                Work(folder, scale).ended()
            found = measure_section(name, SECTIONS[name], scale, path, folder)
        if scale == "full" and (line := found.stale()):
            print(line, flush=True)


@app.command()
def page(results: Folder = RESULTS, check: Check = False) -> None:
    """Write the figures of the result files into README.md and docs/, or, with --check, compare."""
    known, stale = figures(results), []
    for path in pages(ROOT):
        text = path.read_text("utf-8")
        new = filled(text, known, str(path.relative_to(ROOT)))
        if new == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            write_text(path, new)
    if check and stale:
        raise InputError("figures differ from the result files", where=", ".join(stale), how="make bench-page")
    print("\n".join(stale) or "every figure is up to date")


@app.command(hidden=True)
def cell(
    section: str,
    name: str,
    folder: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
    scale: Annotated[str, typer.Option()] = "full",
) -> None:
    """One measurement, in this process."""
    interrupted_by_signals()
    measure_cell(SECTIONS[section], name, cast(Scale, scale), folder, out)


def figures(results: Path) -> dict[str, str]:
    """Every figure of the sections that have a result file, as ``section.name``; and `gap`, `holes`, `horizon`,
    `schedules`, `styles`, `triage`."""
    found = {}
    for name, section in SECTIONS.items():
        path = results / f"{name}.json"
        found |= {f"{name}.{figure}": text for figure, text in section.absent().items()}
        if path.exists():
            measured = Results.read(path)
            rows = {cell: measured.rows[cell] for cell in section.cells(measured.scale) if cell in measured.rows}
            own = {**section.figures(rows), "source": measured.source()}
            found |= {f"{name}.{figure}": text for figure, text in own.items()}
    gaps = gap.figures(rows_of(results / "gap.jsonl")) | gap.start_tables(rows_of(results / "gap-start.jsonl"))
    pairs = triage.figures(rows_of(results / "triage.jsonl"))
    found |= {f"gap.{figure}": text for figure, text in gaps.items()}
    planted = holes.figures(rows_of(results / "holes.jsonl"))
    found |= {f"holes.{figure}": text for figure, text in planted.items()}
    chosen = schedules.figures(rows_of(results / "schedules.jsonl"))
    found |= {f"schedules.{figure}": text for figure, text in chosen.items()}
    turns = horizon.figures(rows_of(results / "horizon.jsonl"))
    found |= {f"horizon.{figure}": text for figure, text in turns.items()}
    answers = styles.figures(rows_of(results / "styles.jsonl"))
    found |= {f"styles.{figure}": text for figure, text in answers.items()}
    return found | {f"triage.{figure}": text for figure, text in pairs.items()}


if __name__ == "__main__":
    try:
        app()
    except CorrectableError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
