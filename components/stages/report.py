"""Stage `report`: the page a person reads before approving, and the run's health in plain words."""

from __future__ import annotations

from components.config import Settings
from components.files import write_text
from components.layout import Layout
from components.progress import progress
from components.report import load_run, render, render_verdict
from components.working import working


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/report.html` and `out/verdict.md` from whatever the other stages left; what is missing is said.

    Raises:
        InputError: an output of another stage exists and is not readable as such.
    """
    with progress("report", 1) as bar:
        with working("reading the run"):
            found = load_run(settings, layout)
        with working("rendering the report"):
            write_text(layout.report, render(found))
        write_text(layout.verdict, render_verdict(found))
        bar.advance(1)
