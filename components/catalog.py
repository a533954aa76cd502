"""Registries that take entries from outside the project.

A `Declaration` names a function or class, the model of its settings, and its properties. A `Catalog` maps the ``kind``
of a setting to one; for ``kind: python`` the declaration is imported, its settings are validated by its own model, and
the contract of the registry is tried on it before it is used.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from components.config.base import Section
from components.config.complaints import complaint
from components.config.extensions import PythonEntry
from components.config.targets import check_code, locate
from components.errors import InputError


class NoSettings(Section):
    """The model of an entry without settings."""


@dataclass(frozen=True)
class Declaration:
    """What a registry holds of one entry."""

    call: Callable[..., Any]
    settings: type[Section] = NoSettings

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)

    def problems(self, settings: Any) -> list[str]:
        """What of the registry's contract this entry breaks with ``settings``; tried on entries from outside."""
        return []


D = TypeVar("D", bound=Declaration)


@dataclass(frozen=True)
class Chosen(Generic[D]):
    """An entry with its settings, which come last in every call."""

    entry: D
    settings: Any

    def __call__(self, *arguments: Any) -> Any:
        return self.entry.call(*arguments, self.settings)


class Catalog(Mapping[str, D]):
    """The built-in entries of a registry by kind, and the way to all others."""

    def __init__(self, of: type[D], entries: Mapping[str, D]) -> None:
        self._of: Any = of
        self._entries = dict(entries)

    def __getitem__(self, kind: str) -> D:
        return self._entries[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def choose(self, settings: Any) -> Chosen[D]:
        """The entry that a section of settings names.

        Raises:
            InputError: an entry from outside cannot be imported, is no declaration of this registry, does not take
                these settings, or breaks the registry's contract.
        """
        if isinstance(settings, PythonEntry):
            return _load(type(settings), settings.model_dump_json(), self._of)
        return Chosen(self._entries[settings.kind], settings)


@lru_cache
def _load(section: type[PythonEntry], text: str, of: Any) -> Chosen[Any]:
    entry = section.model_validate_json(text)
    declaration: Declaration = imported(entry, of)
    settings = _own_settings(entry, declaration.settings)
    if problems := _broken(declaration, settings):
        what = "\n  - ".join([f"{entry.target} breaks the contract of {of.__name__}:", *problems])
        how = "correct the code; docs/extend.md states the contract of each registry"
        raise InputError(what, where=f"target: {entry.target}", how=how)
    return Chosen(declaration, settings)


def _broken(declaration: Declaration, settings: Section) -> list[str]:
    """What of the contract it breaks; an exception of its code is one of these."""
    try:
        return declaration.problems(settings)
    except Exception as error:
        return [f"called with an ordinary input it raises {type(error).__name__}: {error}"]


def imported(entry: PythonEntry, of: type[D]) -> D:
    """The declaration that ``target`` names. Executes the module.

    Raises:
        InputError: as `attribute`, or it is something else.
    """
    found = attribute(entry)
    if not isinstance(found, of):
        place = locate(entry)
        how = f"declare it: {place.attribute} = {of.__name__}(...), as docs/extend.md shows"
        what = f"{entry.target} is a {type(found).__name__}, not a {of.__name__}"
        raise InputError(what, where=place.top, how=how)
    return found


def attribute(entry: PythonEntry) -> Any:
    """What ``target`` names, whatever it is. Executes the module.

    Raises:
        InputError: it cannot be imported, or the attribute is missing.
    """
    place = locate(entry)
    check_code(entry, place)
    if (folder := os.getcwd()) not in sys.path:
        sys.path.append(folder)  # at the end, where the command's way of starting has not put it: it hides nothing
    try:
        return getattr(importlib.import_module(place.module), place.attribute)
    except (Exception, SystemExit) as error:
        how = f"see that `python -c 'from {place.module} import {place.attribute}'` works in this folder"
        what = f"cannot import {entry.target}: {type(error).__name__}: {error}"
        raise InputError(what, where=place.top, how=how) from error


def _own_settings(entry: PythonEntry, model: type[Section]) -> Section:
    try:
        return model.model_validate(json.loads(json.dumps(entry.settings)))
    except ValidationError as error:
        wrong = "".join(f"\n  - settings.{complaint(one)}" for one in error.errors())
        how = f"correct them; {entry.target} takes: {', '.join(model.model_fields) or '(none)'}"
        what = f"the settings of {entry.target} are not valid:{wrong}"
        raise InputError(what, where=f"target: {entry.target}", how=how) from error
