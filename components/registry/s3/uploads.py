"""Files into the bucket, as `blobs/<sha256>`.

A small one goes in one request with its sha256, a large one in parts with their CRC-32, which boto3's transfer manager
sends. Both are computed in one pass: before, or while the parts are sent where the sha256 is known. The server compares
what has arrived with them, and so refuses what has changed since. A blob appears when all its parts are there, and the
file had the sha256. After a process was killed, files that are there are not sent again; one that was cut off is, and
its parts stay until a lifecycle rule removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BytesIO

from s3transfer.manager import TransferManager

from components.errors import EvenkeelError
from components.files import os_errors, sha256_bytes
from components.registry.base import Unavailable
from components.registry.s3.bucket import BLOBS, Bucket, checksum
from components.registry.s3.digested import Digested, digest_file
from components.registry.s3.downloads import TRIES, blob_digest
from components.registry.s3.workers import in_order

SMALL = 2**16
"""Bytes that are sooner sent than looked for."""
FRESH_STARTS = 3
"""Times that an upload is restarted because another process finished or aborted it."""


def put_blobs(bucket: Bucket, files: Iterable[Digested], read_back: Callable[[Digested], bool]) -> list[Digested]:
    """`put_blob` for all files, several at a time, those of equal content once; returns them. They may be computed
    meanwhile."""
    manager, given, begun = bucket.manager(), list[Digested](), set[str]()

    def new() -> Iterator[Digested]:
        for file in files:
            given.append(file)
            if file.sha256 not in begun:
                begun.add(file.sha256)
                yield file

    def put(file: Digested) -> None:
        put_blob(bucket, manager, file, read_back=read_back(file))

    for _ in in_order(put, new(), bucket.transfer.concurrency, using=manager):
        pass
    return given


def put_blob(bucket: Bucket, manager: TransferManager, file: Digested, *, read_back: bool) -> None:
    """Store a file under its digest. What is there already is compared in size and checksum, and not sent again.

    With ``read_back`` it is read again, also where it was there: for a server that does not look at checksums.

    Raises:
        InputError: the file has not its digest, or what is stored under this is something else.
        Unavailable: with ``read_back``, what was sent has arrived damaged.
    """
    sent = _put(bucket, manager, file)
    if read_back:
        _read_back(bucket, manager, file, sent)


def is_stored(bucket: Bucket, file: Digested) -> bool:
    """Whether its blob is there.

    Raises:
        InputError: it is, and not what its name says; or the file has not its digest.
    """
    key = BLOBS + file.sha256
    found = bucket.call("head_object", key, otherwise={"404": None}, ChecksumMode="ENABLED")
    if found is None:
        return False
    whole = found.get("ChecksumType") != "COMPOSITE" and "-" not in found["ETag"]  # else it is one over the parts' sums
    stored = found.get("ChecksumSHA256") if whole else None
    if found["ContentLength"] != file.size or stored not in (None, checksum(bytes.fromhex(file.sha256))):
        file.check()
        raise bucket.damaged(key)
    return True


def _put(bucket: Bucket, manager: TransferManager, file: Digested) -> bool:
    """Store a blob unless it is there; False where it was, or another process has done so meanwhile."""
    for start in range(FRESH_STARTS):
        looks = start > 0 or file.size >= SMALL
        if looks and is_stored(bucket, file):
            return False
        if _send(bucket, manager, file):
            return True
    raise Unavailable(
        "this upload was taken away again and again",
        where=bucket.where(BLOBS + file.sha256),
        how="see that nothing aborts uploads to this bucket while they are running, and try again",
    )


def _send(bucket: Bucket, manager: TransferManager, file: Digested) -> bool:
    """Send a file; False where it has come to be there, or its parts are gone before they were all there."""
    key = BLOBS + file.sha256
    if file.size < bucket.transfer.part_size:
        with os_errors("read", file.path):
            data = file.path.read_bytes()
        if sha256_bytes(data) != file.sha256:
            raise file.changed
        return bucket.run("put_object", key, lambda: _put_at_once(bucket, file, data), {"PreconditionFailed": False})
    manager.client.files[bucket.prefix + key] = file
    start = partial(manager.upload, str(file.path), extra_args={"ChecksumAlgorithm": "CRC32"})
    try:
        with os_errors("read", file.path):
            return bucket.move("upload", key, start, dict.fromkeys(("NoSuchUpload", "InvalidPart"), False))
    except Unavailable:
        if digest_file(file.path, bucket.transfer.part_size).sha256 != file.sha256:
            raise file.changed from None  # the server refused what does not have its checksum
        raise


def _put_at_once(bucket: Bucket, file: Digested, data: bytes) -> bool:
    """In one request, and on a condition, of which the manager knows nothing."""
    bucket.client.put_object(
        Bucket=bucket.name,
        Key=bucket.prefix + BLOBS + file.sha256,
        Body=BytesIO(data),
        ChecksumSHA256=checksum(bytes.fromhex(file.sha256)),
        IfNoneMatch="*",
    )
    return True


def _read_back(bucket: Bucket, manager: TransferManager, file: Digested, sent: bool) -> None:
    """Read a blob, again where a byte may have changed on the way. One that was not ``sent`` by this call stays even
    if it is damaged: it belongs to other trees, too, and how that came about is for a person to find out."""
    key = BLOBS + file.sha256
    if any(blob_digest(bucket, manager, key) == file.sha256 for _ in range(TRIES)):
        return
    if not sent:
        raise bucket.damaged(key)
    try:
        bucket.call("delete_object", key)
        how = "it was removed; try again"
    except EvenkeelError as error:
        how = f"remove it, which failed here ({error.what}), and try again"
    raise Unavailable(
        "what was sent has arrived damaged, and the server does not notice such things",
        where=bucket.where(key),
        how=how,
    )
