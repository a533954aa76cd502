"""Answers whose form counts: ``{"question": ..., "pattern": ...}``; without one, the set's own ``pattern`` counts.

For scores by likelihood a row has ``choices``, the well-formed answer first.
"""

from __future__ import annotations

from components.canaries.items import Probe
from components.canaries.loaders.rows import Row
from components.config.canaries import CanarySettings
from components.patterns import compile_pattern


def layout(row: Row, settings: CanarySettings) -> Probe:
    pattern = row.fields.get("pattern") or settings.pattern
    if not isinstance(pattern, str) or not pattern:
        raise row.error("no pattern that the answer must match", "give `pattern` in the row, or in the set's settings")
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise row.error(f"`pattern`: {error}") from error
    choices = row.texts("choices", 2) if "choices" in row.fields else ()
    return Probe(f"{row.line}", (row.text("question"),), "pattern", choices, whole=True, pattern=pattern)
