"""From a matplotlib figure to SVG inside the page: the same bytes every time, coloured and set by the page's styles."""

from __future__ import annotations

import io
import re
from typing import Any

import matplotlib
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from components.report.palette import LIGHT

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "evenkeel",  # ids are otherwise drawn at random
    "svg.fonttype": "none",  # text stays text: searchable, and set in the page's font
    "text.parse_math": False,  # a dollar sign is a dollar sign
    "font.size": 8.5,
    "axes.linewidth": 0.7,
    "xtick.major.size": 2.5,
    "ytick.major.size": 0,
}

CLEANING = (
    (r"<metadata>.*?</metadata>|<style.*?</style>", ""),  # a style element here would reach the whole page
    (r' id="(?![mp][0-9a-f]{10}")[^"]*"', ""),  # ids that nothing refers to
    (r"font-family: [^;\"]*;? ?", ""),
    (r' transform="rotate\(-0[^"]*"', ""),
    (r"xlink:href", "href"),
    (r"\s*\n\s*", "\n"),
)


def inline(figure: Figure, name: str, description: str) -> Markup:
    """SVG text of ``figure`` for use inside HTML.

    Args:
        figure: drawn with colours of `palette.LIGHT` only.
        name: unique on the page; ids are prefixed with it.
        description: what the plot shows, read out instead of it.
    """
    buffer = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    for pattern, replacement in CLEANING:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    text = re.sub(r'id="|url\(#|href="#', lambda found: f"{found[0]}{name}-", text)
    for role, colour in LIGHT.items():
        text = text.replace(colour, f"var(--{role})")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box, "matplotlib writes a viewBox"
    body = text[text.index(">", box.end()) + 1 :]
    return Markup(f'<svg {box[0]} role="img" aria-label="{escape(description)}">{body}')
