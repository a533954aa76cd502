"""Where a converted folder comes from, and the digests by which it is known to be whole: `provenance.json` in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from components.directories import write_directory
from components.errors import InputError
from components.files import manifest, read_json, sha256_file, write_json

T = TypeVar("T")
FILE = "provenance.json"
MOVE = "choose another folder with --to, or move this one away"
REMOVE = "remove the folder and run the same command again, or choose another one with --to"


def source_of(file: Path) -> dict[str, str]:
    """What is recorded of a file that was there already."""
    return {"file": file.name, "sha256": sha256_file(file)}


def write_recorded(target: Path, source: Mapping[str, Any], fill: Callable[[Path], T]) -> T:
    """Write the folder ``target`` whole or not at all, with its source and the digest of every file that ``fill`` left.

    Returns:
        What ``fill`` returned.

    Raises:
        InputError: the disk is full, or ``target`` cannot be written.
    """

    def filled(folder: Path) -> T:
        result = fill(folder)
        write_json(folder / FILE, {"source": dict(source), "files": manifest(folder)})
        return result

    return write_directory(target, filled)


def is_there(folder: Path, source: Mapping[str, Any]) -> bool:
    """Whether ``folder`` was made of ``source`` and is whole; False where nothing is there.

    Raises:
        InputError: something else is there, or a file of it has changed or is missing.
    """
    if not folder.exists():
        return False
    recorded = read_json(folder / FILE, how=REMOVE) if (folder / FILE).is_file() else None
    if not isinstance(recorded, dict) or recorded.get("source") != dict(source):
        raise InputError("the folder exists and was not made from this source", where=folder, how=MOVE)
    found, files = manifest(folder), recorded.get("files")
    found.pop(FILE)
    if found != files:
        files = files if isinstance(files, dict) else {}
        names = sorted(name for name in found.keys() | files.keys() if found.get(name) != files.get(name))
        raise InputError(f"files have changed since they were converted: {', '.join(names)}", where=folder, how=REMOVE)
    return True
