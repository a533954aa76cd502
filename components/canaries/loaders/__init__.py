"""From a row of a published format to a probe.

- `rows` — JSON lines and CSV, with line numbers
- `formats` — formats of a few fields; `bbq`, `refusal` — one each

`LOADERS` maps ``health.canaries.<name>.format`` to the reader of one row.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from components.canaries.items import Probe
from components.canaries.loaders.bbq import bbq
from components.canaries.loaders.formats import crows_pairs, layout, multiple_choice, qa
from components.canaries.loaders.refusal import refusal
from components.canaries.loaders.rows import Row, read_rows
from components.config.canaries import CanarySettings, Format
from components.errors import InputError

LOADERS: dict[Format, Callable[[Row, CanarySettings], Probe]] = {
    "qa": qa,
    "bbq": bbq,
    "crows_pairs": crows_pairs,
    "refusal": refusal,
    "format": layout,
    "multiple_choice": multiple_choice,
}
FIELDS: dict[Format, str] = {
    "qa": "`question` and `answer`",
    "bbq": "`context`, `question`, `ans0` to `ans2` and `label`",
    "crows_pairs": "`sent_more` and `sent_less`",
    "refusal": "`prompt` and `should_refuse`",
    "format": "`question` and `pattern`",
    "multiple_choice": "`question`, `choices` and `answer`",
}


def read_probes(path: Path, settings: CanarySettings) -> tuple[Probe, ...]:
    """The probes of one file, in its order.

    Raises:
        InputError: the file is missing, empty or malformed, or a row cannot be scored in a requested way; names
            the line.
    """
    probes = []
    for row in read_rows(path):
        probe = LOADERS[settings.format](row, settings)
        if "likelihood" in settings.by and len(probe.choices) < 2:
            wanted = "choices" if settings.format == "format" else "wrong"
            raise row.error("by likelihood answers are compared, and this row has none", f"give `{wanted}`")
        probes.append(probe)
    if not probes:
        raise InputError("no probes", where=path, how=f"give rows with {FIELDS[settings.format]}")
    return tuple(probes)


__all__ = ["LOADERS", "read_probes"]
