"""Which signal of ours is which metric of theirs.

A mapping file says ``ours: theirs``; in full ``ours: {name: theirs, scale: 100}``. ``theirs`` may be a list: the first
name that a step has counts. In a name ``*`` stands for a part between slashes and ``**`` for any number of them; of
several matches the mean is taken, unless ours ends with ``*`` too (``metric_*``): then each is a signal of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError, model_validator

from components.config.base import Section
from components.config.reading import read_tree
from components.config.shipped import PROJECT_CONFIGS
from components.errors import InputError
from components.health.readers.lines import as_number
from components.health.signals import PREFIXES, SIGNALS, find_signal
from components.patterns import Pattern, compile_pattern

NAMES_FOLDER = PROJECT_CONFIGS / "health" / "names"
"""The mapping files of the trainers that have a reader."""

Values = Mapping[str, Any]
"""What a trainer wrote of one step, by its own names."""


class Metric(Section):
    """Where a signal comes from: ``value * scale + offset``, or ``1 - value``."""

    name: tuple[str, ...] = Field(min_length=1, description="Their names, the preferred one first.")
    scale: float = Field(1.0, description="Factor from their unit to ours.")
    offset: float = Field(0.0, description="Added after scaling.")
    one_minus: bool = Field(False, description="Their metric is the share of the opposite.")
    optional: bool = Field(False, description="NaN is what they write where no completion of the step has a value.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        """A name or a list of names stands for a metric that needs no conversion."""
        whole = value if isinstance(value, dict) else {"name": value}
        return {**whole, "name": [whole["name"]]} if isinstance(whole.get("name"), str) else whole

    @model_validator(mode="after")
    def _one_conversion(self) -> Metric:
        if self.one_minus and (self.scale, self.offset) != (1.0, 0.0):
            raise ValueError("one_minus needs no scale and no offset")
        return self

    def convert(self, value: float) -> float:
        return 1 - value if self.one_minus else value * self.scale + self.offset


class _Match(NamedTuple):
    """``place`` of our signal in the mapping, ``choice`` among their names for it, the ``signal`` itself, and the
    ``metric`` that it comes from."""

    place: int
    choice: int
    signal: str
    metric: Metric


class Names(Section):
    """A mapping file."""

    trainer: str = Field("", description="Whose names these are, and of which version.")
    signals: dict[str, Metric] = Field(min_length=1, description="Our signal: their metric.")

    @cached_property
    def _known(self) -> dict[str, list[_Match]]:
        return {}

    def _matches(self, name: str) -> list[_Match]:
        """What a metric of theirs matches. Looked up once a name: a log has few names, and very many of each."""
        if name not in self._known:
            self._known[name] = [
                _Match(place, choice, signal, metric)
                for place, (ours, metric) in enumerate(self.signals.items())
                for choice, theirs in enumerate(metric.name)
                if (signal := _signal(ours, theirs, name)) is not None
            ]
        return self._known[name]

    def reads(self, name: str) -> bool:
        """Whether a metric of theirs is of any use."""
        return bool(self._matches(name))

    def count(self, found: Iterable[str]) -> int:
        """How many of these metrics are of use."""
        return sum(map(self.reads, found))

    def translate(self, values: Values) -> dict[str, float]:
        """Our signals of one step, and ``nonfinite``: how many of them are NaN or infinite, unless the log says that.

        JSON null stands for NaN, which some writers put for it; but the mean over groups of which none had a value is
        null too, and such a signal does not exist in the step.
        """
        columns: dict[str, list[float]] = {}
        done = -1
        for (place, _), found in sorted(self._found(values).items()):
            if place > done:
                columns |= found
                done = place
        signals = {name: sum(column) / len(column) for name, column in columns.items()}
        broken = sum(not math.isfinite(value) for value in signals.values())
        return {"nonfinite": float(broken), **signals}

    def _found(self, values: Values) -> dict[tuple[int, int], dict[str, list[float]]]:
        """The converted numbers by the place of our signal and of their name in its list, and by the signal that each
        belongs to; what no metric has a number for is left out."""
        found: dict[tuple[int, int], dict[str, list[float]]] = {}
        for name, value in values.items():
            for place, choice, signal, metric in self._matches(name):
                number = _no_number(signal) if value is None else as_number(value)
                if number is not None and not (metric.optional and math.isnan(number)):
                    found.setdefault((place, choice), {}).setdefault(signal, []).append(metric.convert(number))
        return found


def _signal(ours: str, theirs: str, name: str) -> str | None:
    """The signal that a metric belongs to where ``ours`` comes from ``theirs``; None where that is not its name."""
    if "*" not in theirs:
        return ours if name == theirs else None
    if (parts := _pattern(theirs).search(name)) is None:
        return None
    return ours[:-1] + re.sub(r"\W", "_", parts[0] or "") if ours.endswith("*") else ours


def _no_number(signal: str) -> float | None:
    described = find_signal(signal)
    return None if described is not None and described.source == "groups" else math.nan


@cache
def _pattern(name: str) -> Pattern:
    """RE2's: a name with many stars takes Python's own engine minutes. Raises ValueError for one that is too long."""
    parts = {"**": "(.+)", "*": "([^/]+)"}
    inner = "".join(parts.get(part) or re.escape(part) for part in re.split(r"(\*\*|\*)", name))
    return compile_pattern(rf"\A(?:{inner})\Z")


def load_names(path: Path) -> Names:
    """Read a mapping file.

    Raises:
        InputError: it is missing or malformed, or maps to a signal that does not exist; names a near one.
    """
    return names_from(read_tree(path), path)


def names_from(tree: Mapping[str, Any], path: Path | str) -> Names:
    """The mapping in ``tree``, which stands at ``path``.

    Raises:
        InputError: as `load_names`.
    """
    try:
        names = Names.model_validate(tree)
    except ValidationError as error:
        said = "\n".join(f"  - {'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in error.errors())
        how = "write `signals:` and under it `ours: theirs`; the files in configs/health/names are examples"
        raise InputError(f"not a mapping of names:\n{said}", where=path, how=how) from error
    for ours, theirs in names.signals.items():
        _check(ours, theirs, path)
    try:
        names.reads("")
    except ValueError as error:
        raise InputError(f"a name cannot be used: {error}", where=path, how="shorten it, or use fewer stars") from error
    return names


def _check(ours: str, theirs: Metric, path: Path | str) -> None:
    where = f"{path}: signals.{ours}"
    if find_signal(ours.replace("*", "x")) is None or "*" in ours[:-1]:
        near = get_close_matches(ours, SIGNALS, n=1)
        how = f"did you mean {near[0]}?" if near else f"use one of: {', '.join(SIGNALS)}"
        raise InputError(f"unknown signal {ours!r}", where=where, how=how)
    if ours.endswith("*") and not all("*" in name for name in theirs.name):
        raise InputError(f"{ours!r} needs a `*` in their name too", where=where, how=f"name one signal: {ours[:-1]}...")


def own_names() -> Names:
    """Our own names, for logs that use them."""
    names = [*SIGNALS, *(f"{prefix}*" for prefix in PREFIXES)]
    return Names(trainer="our own names", signals={name: Metric(name=(name,)) for name in names})
