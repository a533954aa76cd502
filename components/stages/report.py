"""Stage `report`: the page a person reads before approving."""

from __future__ import annotations

from components.config import Settings
from components.files import write_text
from components.layout import Layout
from components.progress import progress
from components.report import load_run, render


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/report.html` from whatever the other stages left; what is missing is said on the page.

    Raises:
        InputError: an output of another stage exists and is not readable as such.
    """
    with progress("report", 1) as bar:
        write_text(layout.report, render(load_run(settings, layout)))
        bar.advance(1)
