"""The validation as one offline page: no script, no network, the same bytes for the same data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.config.environments import VerifiersSource
from components.config.reasoning_gym import ReasoningGymSource
from components.config.sources import PythonSource, Source
from components.config.tasks import GeneratedSource
from components.data.codes import REASONS
from components.data.summary import Tally
from components.pages import render_page

TEMPLATE = Path(__file__).with_name("page.jinja")
LEVELS_SHOWN = 10
EXAMPLES_SHOWN = 12


def render(figures: Mapping[str, Any], tally: Tally, source: Source) -> str:
    """HTML text of the page. ``figures`` is the content of `validation.json`."""
    families, levels = sorted(tally.families), sorted(tally.levels)
    return render_page(
        TEMPLATE,
        source=describe(source),
        summary=figures,
        quarantine=tally.quarantine,
        fix=REASONS,
        families=families,
        levels=levels if len(levels) <= LEVELS_SHOWN else [],
        cells=tally.cells,
        examples=[tally.examples[family] for family in families[:EXAMPLES_SHOWN]],
    )


def describe(source: Source) -> str:
    """Where the rows came from, in a few words; a file by its name, not by where it lies on this machine."""
    if isinstance(source, GeneratedSource):
        return f"{source.task}, generated"
    if isinstance(source, ReasoningGymSource):
        return f"{', '.join(source.shares())} of reasoning-gym {source.version or ''}".strip()
    if isinstance(source, VerifiersSource):
        return f"{source.target}, an environment of verifiers {source.version or ''}".strip()
    if isinstance(source, PythonSource):
        return source.name or source.target
    return source.path.name
