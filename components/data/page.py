"""The validation as one offline page: no script, no network, the same bytes for the same data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.config.sources import FileSource
from components.config.tasks import Generated, GeneratedSource
from components.data.codes import REASONS
from components.data.summary import Tally
from components.pages import render_page

TEMPLATE = Path(__file__).with_name("page.jinja")
LEVELS_SHOWN = 10
EXAMPLES_SHOWN = 12


def render(figures: Mapping[str, Any], tally: Tally, source: Generated | FileSource) -> str:
    """HTML text of the page. ``figures`` is the content of `validation.json`."""
    families, levels = sorted(tally.families), sorted(tally.levels)
    return render_page(
        TEMPLATE,
        source=describe(source),
        summary=figures,
        quarantine=tally.quarantine,
        mend=REASONS,
        families=families,
        levels=levels if len(levels) <= LEVELS_SHOWN else [],
        cells=tally.cells,
        examples=[tally.examples[family] for family in families[:EXAMPLES_SHOWN]],
    )


def describe(source: Generated | FileSource) -> str:
    """Where the rows came from, in a few words; a file by its name, not by where it lies on this machine."""
    if isinstance(source, GeneratedSource):
        return f"{source.task}, generated"
    return source.path.name
