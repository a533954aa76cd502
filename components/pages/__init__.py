"""Pages that a stage writes next to its figures: offline, no script, the same bytes for the same figures.

`base.jinja` is their head and their style; a page extends it and fills the blocks `title` and `body`. The report has
its own templates (`components.report`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from components.printing import block, shortened


def render_page(template: Path, **values: Any) -> str:
    """HTML text of the page."""
    templates = environment(FileSystemLoader([template.parent, Path(__file__).parent]))
    return templates.get_template(template.name).render(**values)


def environment(loader: BaseLoader) -> Environment:
    """Templates with escaping on everywhere: rows and completions are untrusted text."""
    templates = Environment(
        loader=loader,
        autoescape=True,
        finalize=spelled,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["visible"] = visible
    return templates


def spelled(value: Any) -> Any:
    """Whatever a template puts out: of text, what hides or reorders is spelled out; HTML of our own stays."""
    return block(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def visible(text: object, limit: int = 900) -> str:
    """Text written by a model or found in data, so that nothing in it hides or reorders what a reader sees.

    Control and format characters (bidirectional overrides, zero-width marks) are spelled out, line breaks stay, and
    what is beyond ``limit`` characters is counted instead of shown. HTML is escaped later, by the template.
    """
    return block(shortened(str(text), limit))
