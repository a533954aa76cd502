"""The settings in which the runs differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from components.compare.entry import Entry
from components.report.changes import across

ASIDE = re.compile(r"sinks\.|health\.rules\.\w+\.(why|source)$")
"""No part of a run, and words about a rule."""


def settings_that_differ(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """Dotted path -> the value in each run, defaults resolved; `UNSET` where a run has no such setting."""
    found = across([entry.run.settings.model_dump(mode="json") for entry in entries])
    return {key: values for key, values in found.items() if not ASIDE.match(key)}
