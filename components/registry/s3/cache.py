"""What was fetched: `<digest>/`, verified each time it is handed out, so that a torn disk does no harm. The folder may
be deleted at any time.

A tree is filled under `incoming/<digest>/` and renamed when it is whole. What a killed process has fetched of it stays
there for the next one; a lock keeps two from fetching the same.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.errors import InputError
from components.files import manifest, os_errors, sha256_tree
from components.registry.s3.bucket import Bucket
from components.registry.s3.downloads import get_blobs
from components.registry.s3.trees import key_of, read_manifest


class Cache:
    """Trees of a bucket in a local folder."""

    def __init__(self, bucket: Bucket, folder: Path) -> None:
        self._bucket, self._folder = bucket, folder

    def tree(self, digest: str) -> Path:
        """A folder with the content of a stored tree, verified now; fetched unless it is here and undamaged."""
        place = self._folder / digest
        with self._lock(digest):
            if place.is_dir() and _digest_of(place) == digest:
                return place
            files = read_manifest(self._bucket, digest)
            incoming = self._folder / "incoming" / digest
            with os_errors("write", incoming):
                found = self._fill(incoming, files)
                if found != files:
                    shutil.rmtree(incoming)
                    raise self._bucket.damaged(key_of(digest))
                _remove(place)
                os.replace(incoming / "tree", place)
                shutil.rmtree(incoming)
        return place

    def _fill(self, incoming: Path, files: dict[str, str]) -> dict[str, str]:
        """Fetch what is missing of a tree; returns what is there then, each file with the digest it was found to
        have."""
        tree = incoming / "tree"
        wanted = {tree / path: sha256 for path, sha256 in files.items()}
        tree.mkdir(parents=True, exist_ok=True)
        get_blobs(self._bucket, wanted)
        return manifest(tree, lambda path: wanted.get(path, ""))

    @contextmanager
    def _lock(self, digest: str) -> Iterator[None]:
        with os_errors("lock the cache of the registry", self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            file = (self._folder / f".{digest}.lock").open("ab")
            fcntl.flock(file, fcntl.LOCK_EX)
        with file:
            yield


def _digest_of(folder: Path) -> str | None:
    """The digest of a tree; None where it cannot have one."""
    try:
        return sha256_tree(folder)
    except InputError:
        return None


def _remove(place: Path) -> None:
    """Take away what is damaged, in one step for those who look."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.exists():
        removed = tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.")
        os.replace(place, removed)
        shutil.rmtree(removed)
