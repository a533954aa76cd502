"""Faults that are known and not corrected yet, by the name of the case that finds each: why."""

from __future__ import annotations

DATES = "dates by a tag of YAML are being refused elsewhere"
KNOWN: dict[str, str] = {
    "yaml-timestamp-none": DATES,
    "yaml-timestamp-none-history": DATES,
    "date-by-tag": DATES,
}
