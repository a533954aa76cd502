"""Files into the bucket, as `blobs/<sha256>`.

A large file goes in parts, each with its sha256, which the server compares with what has arrived. The server keeps the
parts of an upload that was cut off; the next one lists them and sends the others. A blob appears when all its
parts are there. boto3's transfer manager begins such an upload again, and knows no digest of the whole beforehand.
"""

from __future__ import annotations

import hashlib
from typing import Any

from components.errors import EvenkeelError, InputError
from components.registry.base import Unavailable
from components.registry.s3.bodies import BLOCK
from components.registry.s3.bucket import BLOBS, Bucket, checksum
from components.registry.s3.downloads import TRIES, blob_digest
from components.registry.s3.slices import Digested, Part, Slice, opened
from components.registry.s3.workers import all_of

FRESH_STARTS = 3
"""Times that an upload is restarted because another process finished or aborted it."""


def put_blob(bucket: Bucket, file: Digested, *, read_back: bool) -> None:
    """Store a file under its digest. What is there already is compared in size and checksum, and not sent again.

    With ``read_back`` it is read again, also where it was there: for a server that does not look at checksums.

    Raises:
        InputError: the file has changed since it was digested, or what is stored under its digest is something else.
        Unavailable: with ``read_back``, what was sent has arrived damaged.
    """
    sent = not is_stored(bucket, file) and _put(bucket, file)
    if read_back:
        _read_back(bucket, file, sent)


def is_stored(bucket: Bucket, file: Digested) -> bool:
    """Whether its blob is there.

    Raises:
        InputError: it is, and not what its name says.
    """
    key = BLOBS + file.sha256
    found = bucket.call("head_object", key, otherwise={"404": None}, ChecksumMode="ENABLED")
    if found is None:
        return False
    whole = found.get("ChecksumType") != "COMPOSITE" and "-" not in found["ETag"]  # else it is one over the parts' sums
    stored = found.get("ChecksumSHA256") if whole else None
    if found["ContentLength"] != file.size or stored not in (None, checksum(bytes.fromhex(file.sha256))):
        raise bucket.damaged(key)
    return True


def _put(bucket: Bucket, file: Digested) -> bool:
    """Store a blob; False where somebody else has done so meanwhile."""
    if len(file.parts) > 1:
        return _put_in_parts(bucket, file)
    _send(bucket, file, Part(1, 0, file.size, bytes.fromhex(file.sha256)), "put_object")
    return True


def _send(bucket: Bucket, file: Digested, part: Part, operation: str, **parameters: Any) -> Any:
    """Send a part; when the server finds it damaged, look whether it is the file that has changed."""
    key = BLOBS + file.sha256
    with opened(file.path) as descriptor:
        try:
            return bucket.run(
                operation,
                key,
                lambda end: getattr(bucket.client, operation)(
                    Bucket=bucket.name,
                    Key=bucket.prefix + key,
                    Body=Slice(descriptor, part.start, part.size, end),
                    ContentLength=part.size,
                    ChecksumSHA256=checksum(part.digest),
                    **parameters,
                ),
                otherwise={"NoSuchUpload": None},
            )
        except EvenkeelError:
            if _digest(descriptor, part) != part.digest:
                raise InputError(
                    "the checkpoint changed while it was stored", where=file.path, how="let its writer finish"
                ) from None
            raise


def _digest(descriptor: int, part: Part, algorithm: str = "sha256") -> bytes:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    source = Slice(descriptor, part.start, part.size, end=float("inf"))
    while block := source.read(BLOCK):
        digest.update(block)
    return digest.digest()


def _put_in_parts(bucket: Bucket, file: Digested) -> bool:
    """As `_put`."""
    for _ in range(FRESH_STARTS):
        upload, there = _resumed(bucket, file) or (_begun(bucket, file), {})
        if _send_parts(bucket, file, upload, there):
            return True
        if is_stored(bucket, file):
            return False
    raise Unavailable(
        "this upload was taken away again and again",
        where=bucket.where(BLOBS + file.sha256),
        how="see that nothing aborts uploads to this bucket while they are running, and try again",
    )


def _send_parts(bucket: Bucket, file: Digested, upload: str, there: dict[int, str]) -> bool:
    """Send what is not there, and make a blob of all parts; False where the upload is gone or has become another."""
    parts = [part for part in file.parts if part.number not in there]
    sent = all_of(
        lambda part: _send(bucket, file, part, "upload_part", UploadId=upload, PartNumber=part.number),
        parts,
        bucket.transfer.concurrency,
    )
    if not all(sent):
        return False
    etags = there | {part.number: str(answer["ETag"]) for part, answer in zip(parts, sent, strict=True)}
    return _complete(bucket, file, upload, etags)


def _begun(bucket: Bucket, file: Digested) -> str:
    key = BLOBS + file.sha256
    return str(bucket.call("create_multipart_upload", key, ChecksumAlgorithm="SHA256")["UploadId"])


def _complete(bucket: Bucket, file: Digested, upload: str, etags: dict[int, str]) -> bool:
    """Make a blob of the parts; False where the upload is gone, or holds other parts than these by now."""
    parts = [
        {"PartNumber": part.number, "ETag": etags[part.number], "ChecksumSHA256": checksum(part.digest)}
        for part in file.parts
    ]
    done = bucket.call(
        "complete_multipart_upload",
        BLOBS + file.sha256,
        otherwise=dict.fromkeys(("NoSuchUpload", "InvalidPart"), None),
        UploadId=upload,
        MultipartUpload={"Parts": parts},
    )
    return done is not None


def _resumed(bucket: Bucket, file: Digested) -> tuple[str, dict[int, str]] | None:
    """An upload of this file that was cut off, and the ETags of its parts that are whole; None where there is none.

    One whose parts have other sizes was begun with another part size and is left alone.
    """
    key = bucket.prefix + BLOBS + file.sha256
    uploads = bucket.list("list_multipart_uploads", "Uploads", BLOBS + file.sha256, Prefix=key)
    wanted = {part.number: part for part in file.parts}
    for upload in sorted((one for one in uploads if one["Key"] == key), key=lambda one: one["Initiated"], reverse=True):
        try:
            listed = bucket.list("list_parts", "Parts", BLOBS + file.sha256, Key=key, UploadId=upload["UploadId"])
        except InputError:
            continue  # gone since
        known = [(wanted.get(entry["PartNumber"]), entry) for entry in listed]
        if all(part is not None and part.size == entry["Size"] for part, entry in known):
            with opened(file.path) as descriptor:
                there = {p.number: str(e["ETag"]) for p, e in known if p is not None and _is(descriptor, p, e)}
            return str(upload["UploadId"]), there
    return None


def _is(descriptor: int, part: Part, listed: dict[str, Any]) -> bool:
    """Whether a part that the server lists holds our bytes: by its sha256, or by its MD5, which most ETags are."""
    if "ChecksumSHA256" in listed:
        return bool(listed["ChecksumSHA256"] == checksum(part.digest))
    return bool(listed["ETag"].strip('"') == _digest(descriptor, part, "md5").hex())


def _read_back(bucket: Bucket, file: Digested, sent: bool) -> None:
    """Read a blob, again where a byte may have changed on the way. One that was not ``sent`` by this call stays even
    if it is damaged: it belongs to other trees, too, and how that came about is for a person to find out."""
    key = BLOBS + file.sha256
    if any(blob_digest(bucket, key) == file.sha256 for _ in range(TRIES)):
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
