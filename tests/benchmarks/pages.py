"""Figures in Markdown pages, between marks, so that no figure in them is typed by hand.

A page holds ``<!-- bench accuracy.ratio -->2.1<!-- /bench -->``, in a sentence or around a table. The name is that of a
section and of one of its figures; every section also has ``source``, the line that says with which command, when and
where it was measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from components.errors import InputError

BLOCK = re.compile(r"<!-- bench (?P<name>[\w.-]+) -->(?P<body>.*?)<!-- /bench -->", re.DOTALL)
MARK = re.compile(r"<!-- /?bench\b[^>]*-->")


def filled(text: str, figures: Mapping[str, str], where: str) -> str:
    """The page with every figure as it is now.

    Raises:
        InputError: A mark without its other half, or a figure that no section measures.
    """
    if 2 * len(BLOCK.findall(text)) != len(MARK.findall(text)):
        raise InputError("a mark without its other half", where=where, how="<!-- bench NAME -->...<!-- /bench -->")

    def fill(block: re.Match[str]) -> str:
        name = block["name"]
        if name not in figures:
            known = " or ".join(get_close_matches(name, figures, 5, 0))
            raise InputError(f"no figure {name!r}", where=where, how=f"measure its section, or name {known}")
        value = figures[name].strip()
        body = f"\n\n{value}\n\n" if "\n" in value else value
        return f"<!-- bench {name} -->{body}<!-- /bench -->"

    return BLOCK.sub(fill, text)


def used(text: str) -> list[str]:
    """Names of the figures that a page holds."""
    return [block["name"] for block in BLOCK.finditer(text)]


def without_figures(text: str) -> str:
    """What of a page is written by hand."""
    return BLOCK.sub("", text)


def pages(root: Path) -> list[Path]:
    """All pages that may hold figures."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md")), root / "configs/health/README.md"]
