"""NeMo RL: its console, in which a step is a heading (``=== Step 3/50 ===``) and a line a metric (``• Loss: 0.1``)."""

from __future__ import annotations

import re
from collections.abc import Callable

from components.health.readers.numbers import NUMBER
from components.health.readers.steps import Row

_HEADING = re.compile(r"=+ Step (\d{1,15})/\d{1,15} =+")
_METRIC = re.compile(rf"•\s+(?P<name>[A-Za-z][\w /.-]{{0,60}}?): (?P<value>{NUMBER.pattern})\s*$", re.IGNORECASE)


def reader() -> Callable[[str], Row | None]:
    """A reader that remembers the latest heading."""
    step: int | None = None

    def row(line: str) -> Row | None:
        nonlocal step
        if heading := _HEADING.search(line):
            step = int(heading[1])
        metric = _METRIC.search(line) if step is not None and "•" in line else None
        return None if metric is None or step is None else Row(step, {metric["name"]: float(metric["value"])})

    return row
