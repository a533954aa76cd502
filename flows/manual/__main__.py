"""Print the page."""

from __future__ import annotations

import sys

from flows.manual.commands import commands
from flows.manual.settings import settings

HEAD = """# Manual

All commands and all settings, made from the code by `python -m flows.manual > docs/manual.md`. [The other
pages](README.md) explain what they are for.

- [Commands](#commands)
- [JSON](#json)
- [Settings](#settings)
"""


def page() -> str:
    """The Markdown text."""
    return "\n".join([HEAD, *commands(), *settings()])


if __name__ == "__main__":
    sys.stdout.write(page())
