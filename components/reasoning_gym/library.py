"""The library: loaded only where entries are made or judged, because that takes a second and 60 MB."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from components.errors import InputError

WHERE = "data.source.datasets"
NO_SOURCE = {"composite": "it mixes other data sets: name those under data.source.datasets, with weights"}
"""Data sets that are refused by name, and why."""
DRAWING = (
    *("matplotlib", "matplotlib.pyplot", "matplotlib.animation", "matplotlib.collections"),
    *("mpl_toolkits", "mpl_toolkits.mplot3d"),
)
"""What cellpylib, which the library needs, imports to draw its automata. Nothing here draws, and they take as long to
import as all of the rest."""


class Nothing(ModuleType):
    """A module in which every name stands for None."""

    def __getattr__(self, name: str) -> None:
        return None


def registered() -> dict[str, tuple[Any, Any]]:
    """Data sets by their names: the class of each, and that of its settings. Imports the library."""
    if not {"reasoning_gym", *DRAWING} & sys.modules.keys():
        sys.modules.update({name: Nothing(name) for name in DRAWING})
        try:
            importlib.import_module("reasoning_gym")
        finally:
            for name in DRAWING:
                del sys.modules[name]
    from reasoning_gym.factory import DATASETS

    found: dict[str, tuple[Any, Any]] = DATASETS
    return found


def names() -> list[str]:
    """Every data set that the library registers."""
    return sorted(registered())


def category(name: str) -> str:
    """The library's own heading for a data set: ``arithmetic``, ``games``, ..."""
    return str(registered()[name][0].__module__).split(".")[1]


def open_dataset(name: str, settings: Mapping[str, Any]) -> Any:
    """A data set of the library with these settings, ``seed`` and ``size`` included.

    Raises:
        InputError: there is no such data set, a setting is unknown, or its own validation refuses one.
    """
    datasets = registered()
    if name not in datasets:
        near = get_close_matches(name, datasets, 3)
        how = f"did you mean {' or '.join(near)}?" if near else "`python -m components.audit.library` lists them"
        raise InputError(f"reasoning-gym has no data set {name!r}", where=WHERE, how=how)
    if name in NO_SOURCE:
        raise refused(name, f"{name} cannot be a source", NO_SOURCE[name])
    make, configuration = datasets[name]
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
