"""Does a server honour what the registry stands on? Some ignore conditions and overwrite.

Runs once per process for each bucket. It writes under `probe/` and removes that again.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from botocore.exceptions import ClientError

from components.errors import EvenkeelError, InputError
from components.registry.base import Conflict
from components.registry.s3 import moving
from components.registry.s3.bucket import Bucket, checksum
from components.registry.s3.objects import UNKNOWN, Objects
from components.registry.s3.retries import DAMAGED, code_of

FOLDER = "probe/"
HOW = (
    "use a server with conditional writes (If-None-Match and If-Match of PutObject), such as AWS S3 or MinIO, "
    "or registry.kind: directory"
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What was found. ``missing`` states what promotion needs and this server does not do."""

    missing: tuple[str, ...]
    checksums: bool
    """Whether it refuses what does not have the checksum that it is sent with."""
    left: str = ""
    """The object that could not be removed again."""


_KNOWN: dict[tuple[str, str], Capabilities] = {}
_LOCK = threading.Lock()


def capabilities(bucket: Bucket) -> Capabilities:
    """What the server does; probed the first time only.

    Raises:
        Unavailable, InputError: it cannot be probed. That is not cached.
    """
    place = (bucket.endpoint, bucket.name)
    with _LOCK:
        if place not in _KNOWN:
            _KNOWN[place] = probe(bucket)
        return _KNOWN[place]


def require(bucket: Bucket) -> Capabilities:
    """The capabilities of a server that has those that promotion needs.

    Raises:
        InputError: it has not; nothing may be written to it.
    """
    found = capabilities(bucket)
    if found.missing:
        raise InputError(
            f"this server cannot keep a registry: {'; '.join(found.missing)}", where=bucket.where(), how=HOW
        )
    return found


def probe(bucket: Bucket) -> Capabilities:
    """Probe the server, even if it was probed before."""
    objects, name, left = Objects(bucket, FOLDER), secrets.token_hex(8), ""
    try:
        missing = tuple(_missing(objects, name))
        checksums = _checks(bucket, f"{FOLDER}{name}-sum")
    finally:
        for key in (f"{FOLDER}{name}", f"{FOLDER}{name}-none", f"{FOLDER}{name}-sum"):
            try:
                bucket.call("delete_object", key)
            except EvenkeelError:
                left = bucket.where(key)
    return Capabilities(missing, checksums, left)


def _missing(objects: Objects, name: str) -> Iterator[str]:
    objects.create(name, b"1")
    stored = objects.read(name)
    if stored is None or stored.data != b"1":
        yield "what was written is not read back at once"
        return
    if stored.writers == (UNKNOWN,):
        yield "it does not keep metadata"
    if name not in objects.keys(name):
        yield "what was written is not listed at once"
    if _writes(lambda: objects.create(name, b"2")):
        yield "it ignores If-None-Match and overwrites what is there"
    if _writes(lambda: objects.replace(name, b"3", replace(stored, version=f'"{"0" * 32}"'))):
        yield "it ignores If-Match and overwrites what has changed"
    if _writes(lambda: objects.replace(f"{name}-none", b"4", stored)):
        yield "it ignores If-Match and writes what is not there"
    current = objects.read(name)
    if current is None or not _writes(lambda: objects.replace(name, b"5", current)):
        yield "it refuses to overwrite what has not changed (If-Match)"


def _writes(write: Callable[[], object]) -> bool:
    try:
        write()
    except Conflict:
        return False
    return True


def _checks(bucket: Bucket, key: str) -> bool:
    """Whether it refuses content that does not have its checksum, be it that of small files or that of parts."""
    sha256, crc32 = (
        {"ChecksumSHA256": checksum(hashlib.sha256(b"2").digest())},
        {"ChecksumCRC32": moving.checksum(zlib.crc32(b"2"))},
    )
    return all(_refuses(bucket, key, wrong) for wrong in (sha256, crc32))


def _refuses(bucket: Bucket, key: str, wrong: Mapping[str, str]) -> bool:
    def send() -> bool:
        try:
            bucket.client.put_object(Bucket=bucket.name, Key=bucket.prefix + key, Body=b"1", **wrong)
        except ClientError as error:
            if code_of(error) in (*DAMAGED, "InvalidDigest", "InvalidRequest"):
                return True
            raise
        return False

    return bucket.run("put_object", key, send)
