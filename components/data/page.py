"""The validation as one offline page: no script, no network, the same bytes for the same data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from components.config.sources import FileSource
from components.config.tasks import Generated, GeneratedSource
from components.data.admission import Admission

QUARANTINE_SHOWN = 100
LEVELS_SHOWN = 10
EXAMPLES_SHOWN = 12


def render(admission: Admission, source: Generated | FileSource) -> str:
    """HTML text of the page."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    cells = Counter((prompt.family, prompt.difficulty) for prompt in admission.prompts)
    families, levels = (sorted(set(parts)) for parts in zip(*cells, strict=True))
    examples = {prompt.family: prompt for prompt in reversed(admission.prompts)}
    return environment.get_template("page.jinja").render(
        source=describe(source),
        summary=admission.summary(),
        quarantine=admission.quarantine[:QUARANTINE_SHOWN],
        families=families,
        levels=levels if len(levels) <= LEVELS_SHOWN else [],
        cells=cells,
        examples=[examples[family] for family in families[:EXAMPLES_SHOWN]],
    )


def describe(source: Generated | FileSource) -> str:
    """Where the rows came from, in a few words; a file by its name, not by where it lies on this machine."""
    if isinstance(source, GeneratedSource):
        return f"{source.task}, generated"
    return source.path.name
