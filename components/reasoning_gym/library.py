"""The library: loaded only where entries are made or judged, because that takes a second and 110 MB."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from components.errors import InputError

WHERE = "data.source.datasets"
NO_SOURCE = {"composite": "it mixes other data sets: name those under data.source.datasets, with weights"}
"""Data sets that are refused by name, and why."""


def names() -> list[str]:
    """Every data set that the library registers."""
    from reasoning_gym.factory import DATASETS

    return sorted(DATASETS)


def category(name: str) -> str:
    """The library's own heading for a data set: ``arithmetic``, ``games``, ..."""
    from reasoning_gym.factory import DATASETS

    return str(DATASETS[name][0].__module__).split(".")[1]


def open_dataset(name: str, settings: Mapping[str, Any]) -> Any:
    """A data set of the library with these settings, ``seed`` and ``size`` included.

    Raises:
        InputError: there is no such data set, a setting is unknown, or its own validation refuses one.
    """
    from reasoning_gym.factory import DATASETS

    if name not in DATASETS:
        near = get_close_matches(name, DATASETS, 3)
        how = f"did you mean {' or '.join(near)}?" if near else "`python -m components.audit.library` lists them"
        raise InputError(f"reasoning-gym has no data set {name!r}", where=WHERE, how=how)
    if name in NO_SOURCE:
        raise refused(name, f"{name} cannot be a source", NO_SOURCE[name])
    make, configuration = DATASETS[name]
    known = [field.name for field in dataclasses.fields(configuration)]
    if unknown := sorted(set(settings) - set(known)):
        free = ", ".join(field for field in known if field not in ("seed", "size"))
        raise refused(f"{name}.settings", f"{name} has no setting {unknown[0]!r}", f"its settings are: {free}")
    try:
        return make(config=configuration(**settings))  # which validates it
    except Exception as error:  # an assertion, mostly; whatever it is, the settings are to blame
        what = f"{name} refuses its settings: {error or type(error).__name__}"
        raise refused(f"{name}.settings", what, "correct the setting that it names") from error


def refused(place: str, what: str, how: str) -> InputError:
    """Why a data set, or its settings, cannot be a source."""
    return InputError(what, where=f"{WHERE}.{place}", how=how)
