"""A store in a folder, for one machine or a shared file system with working locks."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from components.directories import write_directory
from components.errors import InputError
from components.files import os_errors, sha256_bytes, sha256_tree, write_bytes
from components.registry.base import Conflict, Store, check_digest, check_key, copy_tree


class DirectoryStore(Store):
    """Objects are files under ``objects/``, trees are folders under ``trees/``; one lock file serialises the writers.

    A writer that dies holds no lock, because the kernel releases it, and leaves no half of an object, because objects
    appear by rename.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def _object(self, key: str) -> Path:
        return self._root / "objects" / check_key(key)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with os_errors("lock the registry", self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            file = (self._root / ".lock").open("ab")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def put_if_absent(self, key: str, data: bytes) -> bool:
        path = self._object(key)
        with self._lock():
            if path.exists():
                return False
            write_bytes(path, data)
            return True

    def get(self, key: str) -> tuple[bytes, str] | None:
        path = self._object(key)
        if not path.is_file():
            return None
        with os_errors("read", path):
            data = path.read_bytes()
        return data, sha256_bytes(data)

    def compare_and_swap(self, key: str, data: bytes, expected: str | None) -> str:
        path = self._object(key)
        with self._lock():
            current = self.get(key)
            found = None if current is None else current[1]
            if found != expected:
                raise Conflict("someone else has written this object", where=key, how="read it again and retry")
            write_bytes(path, data)
        return sha256_bytes(data)

    def keys(self, prefix: str) -> list[str]:
        root = self._root / "objects"
        with os_errors("list", root):
            below = (root / prefix.rpartition("/")[0]).rglob("*")
            keys = [path.relative_to(root).as_posix() for path in below if path.is_file()]
        return sorted(key for key in keys if key.startswith(prefix) and not Path(key).name.startswith("."))

    def put_tree(self, directory: Path) -> str:
        digest = sha256_tree(directory)
        target = self._tree(digest)
        with self._lock():
            if target.is_dir():
                self.tree(digest)
            else:
                write_directory(target, lambda staging: copy_tree(directory, staging, digest))
        return digest

    def has_tree(self, digest: str) -> bool:
        return self._tree(digest).is_dir()

    def tree(self, digest: str) -> Path:
        path = self._tree(digest)
        if not path.is_dir():
            raise InputError("no such checkpoint in the registry", where=path, how="propose the checkpoint again")
        if sha256_tree(path) != digest:
            raise InputError(
                "a stored checkpoint no longer has the digest it is stored under",
                where=path,
                how="it was changed or damaged: find out how, remove the folder, and propose the checkpoint again",
            )
        return path

    def probe(self) -> None:
        """Try what all of this stands on, a lock and a write; nothing is left behind.

        Raises:
            InputError: it cannot be had there.
        """
        key = f"probe-{token_hex(8)}"
        with os_errors("keep a registry here", self._root):
            self.put_if_absent(key, b"")
            self._object(key).unlink()

    def _tree(self, digest: str) -> Path:
        return self._root / "trees" / check_digest(digest)
