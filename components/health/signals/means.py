"""A mean of nothing does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean


def means(columns: Mapping[str, Iterable[float]]) -> dict[str, float]:
    """The mean of each column that has a value."""
    filled = {name: list(values) for name, values in columns.items()}
    return {name: fmean(values) for name, values in filled.items() if values}
