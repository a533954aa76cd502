"""Faults that are known and not corrected yet, by the name of the case that finds each: why."""

from __future__ import annotations

KNOWN: dict[str, str] = {}
