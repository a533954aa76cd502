"""A store in a folder, for one machine or a shared file system with hard links and working locks."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from components.directories import write_directory
from components.errors import InputError
from components.files import flushed, os_errors, sha256_bytes, sha256_json, sha256_tree, write_bytes
from components.registry.base import LARGEST, Conflict, Store, check_digest, check_key, is_key
from components.registry.copying import copy_tree

NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What file systems say that have no hard links."""


class DirectoryStore(Store):
    """Objects are files under ``objects/``, trees are folders under ``trees/``.

    Objects are created by hard link, which the file system does for one writer only, and replaced by rename, so that
    none is ever half there. A lock file serialises those who replace an object or store a tree. No record rests on it,
    and there is never a reason to remove it: a writer that dies holds no lock, because the kernel releases it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def _object(self, key: str) -> Path:
        return self._root / "objects" / check_key(key)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        path, held = self._root / ".lock", False
        while not held:
            with os_errors("lock the registry", self._root):
                self._root.mkdir(parents=True, exist_ok=True)
                file = path.open("ab")
                fcntl.flock(file, fcntl.LOCK_EX)
            with file:
                if held := _is_at(path, file):  # else others lock the one that is there now
                    yield

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return _create(self._object(key), data)

    def get(self, key: str) -> tuple[bytes, str] | None:
        path = self._object(key)
        with os_errors("read", path):
            if not path.is_file():
                return None
            with path.open("rb") as file:
                data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise InputError("too large for a record", where=path, how="find out who wrote it")
        return data, sha256_bytes(data)

    def compare_and_swap(self, key: str, data: bytes, expected: str | None) -> str:
        if not (self.put_if_absent(key, data) if expected is None else self._replace(key, data, expected)):
            raise Conflict("someone else has written this object", where=key, how="read it again and retry")
        return sha256_bytes(data)

    def _replace(self, key: str, data: bytes, expected: str) -> bool:
        with self._lock():
            found = self.get(key)
            if found is None or found[1] != expected:
                return False
            write_bytes(self._object(key), data)
            return True

    def keys(self, prefix: str) -> list[str]:
        root = self._root / "objects"
        with os_errors("list", root):
            below = _files(root / prefix.rpartition("/")[0])
            keys = [path.relative_to(root).as_posix() for path in below if path.is_file()]
        return sorted(key for key in keys if key.startswith(prefix) and is_key(key))

    def put_tree(self, directory: Path, files: Mapping[str, str] | None = None) -> str:
        digest = sha256_tree(directory) if files is None else sha256_json(files)
        target = self._tree(digest)
        with self._lock():
            if target.is_dir():
                self.tree(digest)
            else:
                write_directory(target, lambda staging: copy_tree(directory, staging, digest, soon=False))
        return digest

    def has_tree(self, digest: str) -> bool:
        return self._tree(digest).is_dir()

    def tree(self, digest: str) -> Path:
        path = self._tree(digest)
        if path.is_symlink():
            how = "put the folder itself in its place: what lies elsewhere can be changed from there"
            raise InputError("a stored checkpoint is a symbolic link", where=path, how=how)
        if not path.is_dir():
            raise InputError("no such checkpoint in the registry", where=path, how="propose the checkpoint again")
        if sha256_tree(path) != digest:
            how = "it was changed or damaged: find out how, remove the folder, and propose the checkpoint again"
            raise InputError("a stored checkpoint no longer has the digest it is stored under", where=path, how=how)
        return path

    def _tree(self, digest: str) -> Path:
        return self._root / "trees" / check_digest(digest)


def probe(root: Path) -> None:
    """Try what a store stands on, hard links, locks and renames, in its folder or where that is going to be.

    Nothing is left behind, not even that somebody tried: what an empty folder holds then is no registry.

    Raises:
        InputError: one of them cannot be had, or there is something else than a folder.
    """
    with os_errors("keep a registry here", root):
        there = next(folder for folder in (root, *root.parents) if folder.exists())
        with tempfile.TemporaryDirectory(dir=there, prefix=".probe.") as own:
            store = DirectoryStore(Path(own))
            store.compare_and_swap("probe", b"2", store.compare_and_swap("probe", b"1", None))


def _files(folder: Path) -> Iterator[Path]:
    """All below a folder that is no folder; none where it is not there. `Path.rglob` passes over folders that cannot be
    read, and what is in them would count as absent: here they are an OSError."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for place, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(place) / name for name in names)


def _create(path: Path, data: bytes) -> bool:
    """Write a file that is not there, whole and flushed; False where something is. By a hard link: nothing else gives a
    name to what is whole already and to one writer only."""
    with flushed(path, data) as name:
        try:
            os.link(name, path)
        except FileExistsError:
            return os.stat(name).st_nlink > 1  # NFS may lose the answer, and then meets in its repetition what it did
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            how = "use a folder on a file system that has them, or registry.kind: s3"
            what = f"a registry cannot be kept on a file system without hard links ({error.strerror})"
            raise InputError(what, where=path, how=how) from error
    return True


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
