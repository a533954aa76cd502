"""Pages that a stage leaves beside its figures: offline, no script, the same bytes for the same figures.

`base.jinja` is their head and their style; a page extends it and fills the blocks `title` and `body`. The report has
its own templates (`components.report`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render_page(template: Path, **values: Any) -> str:
    """HTML text of the page. Everything is escaped: rows and completions are untrusted text."""
    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible
    return environment.get_template(template.name).render(**values)


def visible(text: str) -> str:
    """The text with characters that cannot be seen written out: what fooled a verifier must not fool a reader."""
    shown = (c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)
    return "".join(shown) or "(empty)"
