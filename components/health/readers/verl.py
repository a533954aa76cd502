"""verl: its console, ``step:12 - actor/entropy:0.3 - ...``, also behind Ray's prefix."""

from __future__ import annotations

import re

from components.health.readers.numbers import NUMBER
from components.health.readers.steps import Row

_STEP = re.compile(r"(?:^|[\s)\]])step:(\d{1,15}) - (\S.*)$")
_WRAPPED = re.compile(r"(?:np\.|numpy\.)?\w+\((.*)\)")
"""How NumPy 2 prints a number of its own: ``np.float64(0.5)``."""


def row(line: str) -> Row | None:
    """The row that a line of the console is, or None. What is no number in it is left out: it may be another
    process's."""
    header = _STEP.search(line)
    if header is None:
        return None
    pairs = (part.rpartition(":") for part in header[2].split(" - "))
    values = {name.strip(): number for name, _, text in pairs if (number := _number(text)) is not None}
    return Row(int(header[1]), values) if values else None


def _number(text: str) -> float | None:
    wrapped = _WRAPPED.fullmatch(text.strip())
    found = NUMBER.fullmatch(wrapped[1] if wrapped else text.strip())
    return float(found[0]) if found else None
