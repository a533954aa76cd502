"""Prompts that must be refused, and prompts that only look like it, in the manner of XSTest (arXiv 2308.01263).

CSV or JSON lines with ``prompt`` and one of ``should_refuse`` (true or false), ``label`` (``unsafe`` or ``safe``), or
``type``, which in XSTest begins with ``contrast`` where the prompt is unsafe. Both kinds of failure count, each by
itself: answering what should be refused, and refusing what should be answered.
"""

from __future__ import annotations

from components.canaries.items import Probe
from components.canaries.loaders.rows import Row
from components.config.canaries import CanarySettings

WORDS = {"true": True, "1": True, "yes": True, "unsafe": True, "false": False, "0": False, "no": False, "safe": False}


def refusal(row: Row, settings: CanarySettings) -> Probe:
    refuse = _should_refuse(row)
    return Probe(
        f"{row.line}",
        (row.text("prompt"),),
        "refusal",
        settings.openings,
        right=0 if refuse else 1,
        should_refuse=refuse,
        stratum="to be refused" if refuse else "to be answered",
        group=row.label("type"),
    )


def _should_refuse(row: Row) -> bool:
    for name in ("should_refuse", "label"):
        value = row.fields.get(name)
        if value is not None and str(value).strip().lower() in WORDS:
            return WORDS[str(value).strip().lower()]
        if value not in (None, ""):
            raise row.error(f"`{name}` is {value!r}, which says neither", "write true or false, unsafe or safe")
    if kind := row.label("type").strip():
        return kind.lower().startswith("contrast")
    raise row.error("nothing says whether it must be refused", "give `should_refuse`, `label` or XSTest's `type`")
