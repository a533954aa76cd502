"""Blobs out of the bucket: parts fetched at the same time, written and digested in order, resumed where they ended."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from components.errors import InputError
from components.files import os_errors
from components.registry.s3.bodies import BLOCK, whole
from components.registry.s3.bucket import BLOBS, Bucket
from components.registry.s3.slices import spans
from components.registry.s3.workers import in_order

TRIES = 2
"""Times that content with a wrong digest is read from the beginning: a byte may have changed on the way, and what was
resumed may have been torn by a power cut."""


def get_blob(bucket: Bucket, sha256: str, target: Path, unfinished: Path) -> None:
    """Fetch a blob into the file ``target``, which appears when its digest is right. ``unfinished`` holds it until
    then.

    Raises:
        InputError: it is not there, or is not what its name says.
    """
    for _ in range(TRIES):
        if _fetch(bucket, BLOBS + sha256, unfinished) == sha256:
            with os_errors("write", target):
                os.replace(unfinished, target)
            return
        unfinished.unlink()
    raise bucket.damaged(BLOBS + sha256)


def blob_digest(bucket: Bucket, key: str) -> str:
    """The digest of what is stored."""
    digest = hashlib.sha256()
    for data in _parts(bucket, key):
        digest.update(data)
    return digest.hexdigest()


def _fetch(bucket: Bucket, key: str, path: Path) -> str:
    """Append what is missing to a file; returns the digest of all of it."""
    with os_errors("write", path), path.open("a+b") as file:
        digest, start = hashlib.sha256(), file.seek(0, os.SEEK_END)
        file.seek(0)
        while block := file.read(BLOCK):
            digest.update(block)
        for data in _parts(bucket, key, start):
            file.write(data)
            digest.update(data)
    return digest.hexdigest()


def _parts(bucket: Bucket, key: str, start: int = 0) -> Iterator[bytearray]:
    """A blob from ``start`` on, in order."""
    found = bucket.call("head_object", key, otherwise={"404": None})
    if found is None:
        raise bucket.damaged(key)
    wanted = spans(int(found["ContentLength"]), bucket.transfer.part_size, start)
    return in_order(lambda span: _get(bucket, key, found["ETag"], *span), wanted, bucket.transfer.concurrency)


def _get(bucket: Bucket, key: str, etag: str, start: int, size: int) -> bytearray:
    """A part of a blob that is still the one with this ETag."""

    def send(end: float) -> bytearray:
        answer = bucket.client.get_object(
            Bucket=bucket.name, Key=bucket.prefix + key, IfMatch=etag, Range=f"bytes={start}-{start + size - 1}"
        )
        matches = answer.get("ContentRange", "").startswith(f"bytes {start}-{start + size - 1}/")
        if not matches or answer["ContentLength"] != size:
            raise InputError(
                "the server sends something other than the requested part of the file",
                where=bucket.where(key),
                how="use a server that knows the header Range",
            )
        return whole(answer, end)

    return bucket.run("get_object", key, send)
