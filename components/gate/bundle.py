"""The evidence of a run as a folder that is kept with its candidate, laid out as a run is: `collect` reads it.

Left out are checkpoints, training data and preference pairs, which no check reads, and what is too large; the latter is
listed in `omitted.json`. The bytes are those of the run, so the same run gives the same folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from components.directories import write_directory
from components.errors import InputError
from components.files import os_errors, read_json, sha256_file, write_json
from components.layout import Layout

KINDS = frozenset({".json", ".jsonl", ".csv", ".md", ".html"})
"""Endings of what a run says about itself."""
LEFT_OUT = ("sft", "dpo", "data", "train/checkpoint", "train/pairs.jsonl")
"""Below `out`: weights and training data."""
OF_THE_DATA = ("data/test.jsonl", "data/consistency.json", "data/validation.html")
"""Below `out`: what it takes to evaluate another checkpoint on the same prompts, and the page that the report links."""
OMITTED = "omitted.json"
LARGEST, LARGEST_IN_ALL = 64 * 2**20, 256 * 2**20
"""Bytes of one file and of all of them."""


def gather(layout: Layout, lineage: Mapping[str, Any], target: Path) -> dict[str, Any]:
    """Fill the folder ``target``, in place of what is there, with the evidence of the run in ``layout``.

    Args:
        lineage: where the candidate comes from; becomes `lineage.json`.

    Returns:
        What was left out as too large: path -> bytes and sha256.

    Raises:
        InputError: the run has no settings, a file cannot be read, or is a link.
    """
    if not layout.params.is_file():
        raise InputError("there are no settings of a run", where=layout.params, how="name the folder of a run")

    def fill(staging: Path) -> dict[str, Any]:
        omitted: dict[str, Any] = {}
        room = LARGEST_IN_ALL
        for path in _files(layout):
            name, size = path.relative_to(layout.root).as_posix(), path.stat().st_size
            if size > min(LARGEST, room) and path not in (layout.params, layout.lock):
                omitted[name] = {"bytes": size, "sha256": sha256_file(path)}
                continue
            room -= size
            copy = staging / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with os_errors("copy", path):
                shutil.copyfile(path, copy, follow_symlinks=False)
        write_json(Layout(staging).lineage, dict(lineage))
        write_json(staging / OMITTED, omitted)
        return omitted

    return write_directory(target, fill)


def read_omitted(layout: Layout) -> dict[str, Any]:
    """What was left out of the evidence in ``layout``.

    Raises:
        InputError: nothing was gathered there.
    """
    found = read_json(layout.root / OMITTED)
    if not isinstance(found, dict):
        raise InputError("expected a JSON object", where=layout.root / OMITTED)
    return found


def _files(layout: Layout) -> Iterator[Path]:
    """Settings and lock, then everything of a known kind below `out`, small ones before large ones in each folder."""
    for path in (layout.params, layout.lock):
        if path.is_file():
            yield path
    found = [path for path in layout.out.rglob("*") if path.suffix in KINDS and _belongs(path.relative_to(layout.out))]
    for path in sorted(found, key=lambda path: (path.stat().st_size, path.as_posix())):
        if path.is_symlink():
            raise InputError("a link among what a run left", where=path, how="replace it by the file itself")
        if path.is_file():
            yield path


def _belongs(below: Path) -> bool:
    name = below.as_posix()
    if name in OF_THE_DATA:
        return True
    around = {name, *(parent.as_posix() for parent in PurePosixPath(name).parents)}
    return around.isdisjoint(LEFT_OUT) and "checkpoint" not in PurePosixPath(name).parts
