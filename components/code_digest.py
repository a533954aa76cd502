"""The digest of Python code: two processes, or two runs, that must have the same code compare it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from components.files import sha256_file, sha256_json


def code_digest(root: Path = Path(__file__).parent, parts: Sequence[str] = (".",)) -> str:
    """Digest of the Python files below a folder, that of the components unless another one is named, or of some
    ``parts`` of it: folders and files. That of the components is of the moment when it is first computed in a process,
    which has loaded that code."""
    return _own_digest(tuple(parts)) if root == Path(__file__).parent else _code_digest(root, parts)


@functools.cache
def _own_digest(parts: tuple[str, ...]) -> str:
    return _code_digest(Path(__file__).parent, parts)


def _code_digest(root: Path, parts: Sequence[str]) -> str:
    found = {path for part in parts for path in (root / part).rglob("*.py")}
    found |= {root / part for part in parts if part.endswith(".py")}
    files = {path.relative_to(root).as_posix(): sha256_file(path) for path in sorted(found)}
    return sha256_json(files)
