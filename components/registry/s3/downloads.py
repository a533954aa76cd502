"""Blobs out of the bucket by boto3's transfer manager, digested while they are written."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from s3transfer.futures import TransferFuture
from s3transfer.manager import TransferManager

from components.files import os_errors, sha256_file
from components.registry.s3.bucket import BLOBS, Bucket
from components.registry.s3.digested import BLOCK
from components.registry.s3.workers import in_order

TRIES = 2
"""Times that content with a wrong digest is read: a byte may have changed on the way."""


class Sink:
    """Takes content from its beginning to its end. It cannot be sought in, so the manager puts the parts in order."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file, self.digest = file, hashlib.sha256()
        if file and file.tell():  # ext4 flushes a file at its end that was ever cut to nothing, a new one too
            file.seek(0)
            file.truncate()

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), BLOCK):
            block = memoryview(data)[start : start + BLOCK]
            self.digest.update(block)
            if self._file:
                self._file.write(block)


def get_blobs(bucket: Bucket, wanted: Mapping[Path, str]) -> None:
    """Fetch blobs into files, each of which appears when its digest is right. What is there already with that digest
    stays.

    Args:
        wanted: file -> sha256.

    Raises:
        InputError: one is not there, is not what its name says, or cannot be written here.
    """
    manager, places = bucket.manager(), dict[str, list[Path]]()
    for path, sha256 in wanted.items():
        places.setdefault(sha256, []).append(path)

    def get(item: tuple[str, list[Path]]) -> None:
        sha256, targets = item
        missing = [path for path in targets if not (path.is_file() and sha256_file(path) == sha256)]
        source = next((path for path in targets if path not in missing), None)
        for target in missing:
            with _appearing(target, sha256) as unfinished:
                if source is None:
                    _fetch(bucket, manager, sha256, unfinished)
                else:
                    shutil.copyfile(source, unfinished)
            source = source or target

    for _ in in_order(get, places.items(), bucket.transfer.concurrency, using=manager):
        pass


def blob_digest(bucket: Bucket, manager: TransferManager, key: str, file: IO[bytes] | None = None) -> str:
    """The digest of what is stored, which is written to ``file``."""
    sinks: list[Sink] = []

    def start(**place: str) -> TransferFuture:
        sinks.append(Sink(file))
        return manager.download(fileobj=sinks[-1], **place)

    if not bucket.move("download", key, start, {"404": False, "NoSuchKey": False}):
        raise bucket.damaged(key)
    return sinks[-1].digest.hexdigest()


@contextmanager
def _appearing(target: Path, sha256: str) -> Iterator[Path]:
    """A name in its folder under which a file comes to be, which is ``target`` afterwards."""
    with os_errors("write", target):
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{sha256}.part")
        yield unfinished
        os.replace(unfinished, target)


def _fetch(bucket: Bucket, manager: TransferManager, sha256: str, path: Path) -> None:
    for _ in range(TRIES):
        with path.open("wb") as file:
            if blob_digest(bucket, manager, BLOBS + sha256, file) == sha256:
                return
    path.unlink()
    raise bucket.damaged(BLOBS + sha256)
