"""Where the code of a ``kind: python`` setting is. Finds files; imports and executes nothing."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from components.code_digest import code_digest
from components.config.extensions import PythonEntry, python_entries
from components.errors import InputError
from components.files import sha256_file

OWN = frozenset({"components", "flows"})


class Place(NamedTuple):
    """A module and the name of an attribute in it, and the file or folder that its digest is taken of: the outermost
    package with an ``__init__.py``, or the module itself where there is none."""

    module: str
    attribute: str
    top: Path


def locate(entry: PythonEntry) -> Place:
    """Resolve ``target`` to a place.

    Raises:
        InputError: there is no such entry point or module, there are two, or it belongs to Evenkeel itself.
    """
    module, _, attribute = _spelled_out(entry).partition(":")
    first, *others = module.split(".")
    if first in OWN:
        raise InputError(
            f"{entry.target} is code of Evenkeel itself",
            where=f"target: {entry.target}",
            how="use the built-in kind, or your own module",
        )
    folders = _folders_of(first, entry)
    for name in (first, *others):
        spec = PathFinder.find_spec(name, folders)
        if spec is None:
            raise _missing(name, entry)
        inside = list(spec.submodule_search_locations or ())
        if spec.origin is not None:
            return Place(module, attribute, Path(inside[0] if inside else spec.origin))
        folders = inside
    raise InputError(f"{module} is a folder without code", where=f"target: {entry.target}", how="name a module in it")


def _folders_of(name: str, entry: PythonEntry) -> list[str]:
    """Where the top-level module is found: the working directory, or else the interpreter's path.

    Raises:
        InputError: it is in neither, or in both. Which of the two an import takes differs between commands.
    """
    here = os.getcwd()
    installed = [part for part in sys.path if part and os.path.realpath(part) != os.path.realpath(here)]
    found = [folders for folders in ([here], installed) if PathFinder.find_spec(name, folders) is not None]
    if len(found) > 1:
        raise InputError(
            f"{name!r} is a module of the working directory and one that is installed",
            where=f"target: {entry.target}",
            how="rename the one in the working directory",
        )
    if not found:
        raise _missing(name, entry)
    return found[0]


def _missing(name: str, entry: PythonEntry) -> InputError:
    return InputError(
        f"there is no module or package named {name!r}",
        where=f"target: {entry.target}",
        how="run the command in the folder that contains it, or install the package that contains it",
    )


def digest(place: Place) -> str:
    """Digest of that file, or of the Python files in that folder."""
    return code_digest(place.top) if place.top.is_dir() else sha256_file(place.top)


def check_code(entry: PythonEntry, place: Place) -> str:
    """`digest`, compared with the one in the settings where there is one.

    Raises:
        InputError: the code has changed.
    """
    found = digest(place)
    if entry.sha256 is not None and found != entry.sha256:
        raise InputError(
            f"the code of {entry.target} has changed: expected sha256 {entry.sha256[:12]}, found {found[:12]}",
            where=place.top,
            how="write params.yaml again (`evenkeel params --config ... > params.yaml`), or restore the code",
        )
    return found


def check_code_of(settings: Any) -> None:
    """See that the code of every entry in settings is that of its digest; imports nothing.

    Raises:
        InputError: as `locate` and `check_code`.
    """
    for _, entry in python_entries(settings):
        if entry.counts:
            check_code(entry, locate(entry))


def _spelled_out(entry: PythonEntry) -> str:
    """``package.module:attribute``, of an entry point where the target is the name of one."""
    if ":" in entry.target or entry.whole_module:
        return entry.target
    known = {point.name: point.value for point in entry_points(group=entry.group)}
    if entry.target not in known:
        raise InputError(
            f"no installed package has an entry point {entry.target!r} in the group {entry.group!r}",
            where=f"target: {entry.target}",
            how=f"write package.module:attribute, or one of: {', '.join(sorted(known)) or '(none is installed)'}",
        )
    return known[entry.target]
