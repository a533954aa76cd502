"""The validation as one offline page: no script, no network, the same bytes for the same data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from components.config.sources import FileSource
from components.config.tasks import Generated, GeneratedSource
from components.data.codes import REASONS
from components.data.summary import Tally

LEVELS_SHOWN = 10
EXAMPLES_SHOWN = 12


def render(figures: Mapping[str, Any], tally: Tally, source: Generated | FileSource) -> str:
    """HTML text of the page. ``figures`` is the content of `validation.json`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    families, levels = sorted(tally.families), sorted(tally.levels)
    return environment.get_template("page.jinja").render(
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
