"""Faults that are known and not corrected yet, by the name of the case that finds each: why."""

from __future__ import annotations

DATES = "dates by a tag of YAML are being refused elsewhere"
HUGE = "an object of the registry that is larger than memory is read whole (components/registry/directory.py)"
KNOWN: dict[str, str] = {
    "yaml-timestamp-none": DATES,
    "yaml-timestamp-none-history": DATES,
    "date-by-tag": DATES,
    "aliases/champion.json-huge-verify---all": HUGE,
    "candidates/*-huge-verify---all": HUGE,
    "promotions/*2.json-huge-verify---all": HUGE,
    "signatures/*/*-huge-verify---all": HUGE,
    "registry.json-huge-verify---all": HUGE,
}
