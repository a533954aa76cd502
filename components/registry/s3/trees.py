"""Folders: a manifest, `trees/<digest>.json`, which is exactly the text that the digest is of, and the blobs it
names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from components.checkpoints.names import check_names
from components.errors import InputError
from components.files import dump_json, manifest, sha256_bytes
from components.registry.base import Unavailable, check_digest
from components.registry.s3.bucket import Bucket, checksum
from components.registry.s3.digested import digest_file
from components.registry.s3.downloads import TRIES
from components.registry.s3.uploads import put_blobs
from components.registry.s3.workers import in_order

TREES = "trees/"
AHEAD = 2
"""Files that are digested at the same time."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def key_of(digest: str) -> str:
    return f"{TREES}{check_digest(digest)}.json"


def put_tree(bucket: Bucket, directory: Path, known: Mapping[str, str], *, read_back: bool) -> str:
    """Store a folder, its manifest last; returns its digest. While files are sent the next ones are digested, and those
    whose digests are ``known`` themselves."""
    paths = list(manifest(directory, lambda _: "0" * 64))
    check_names(paths, directory)
    part_size = bucket.transfer.part_size
    digested = in_order(lambda path: digest_file(directory / path, part_size, known.get(path)), paths, AHEAD)
    stored = put_blobs(bucket, digested, read_back=lambda _: read_back)
    files = {path: file.sha256 for path, file in zip(paths, stored, strict=True)}
    data = dump_json(files).encode()
    digest = sha256_bytes(data)
    _put_manifest(bucket, digest, data)
    return digest


def _put_manifest(bucket: Bucket, digest: str, data: bytes) -> None:
    """Store a manifest unless it is there; one that is there and damaged is an error."""
    for _ in range(TRIES):
        created = bucket.call(
            "put_object",
            key_of(digest),
            otherwise={"PreconditionFailed": None},
            Body=data,
            ChecksumSHA256=checksum(bytes.fromhex(digest)),
            IfNoneMatch="*",
        )
        if created is not None or _manifest(bucket, digest) is not None:
            return
    raise Unavailable(
        "the manifest is there, and then is not",
        where=bucket.where(key_of(digest)),
        how="see what removes it, and try again",
    )


def has_tree(bucket: Bucket, digest: str) -> bool:
    return _manifest(bucket, digest) is not None


def read_manifest(bucket: Bucket, digest: str) -> dict[str, str]:
    """The files of a stored tree: path -> sha256.

    Raises:
        InputError: no such tree, not the manifest with this digest, or paths that could leave a folder.
    """
    key = key_of(digest)
    data = _manifest(bucket, digest)
    if data is None:
        raise InputError(
            "no such checkpoint in the registry", where=bucket.where(key), how="propose the checkpoint again"
        )
    try:
        files = json.loads(data)
        if dump_json(files).encode() != data:
            raise ValueError("not as it is written here")
    except (ValueError, RecursionError):
        raise InputError("not a manifest", where=bucket.where(key), how="find out who wrote it") from None
    check_manifest(files, where=bucket.where(key))
    return files  # type: ignore[no-any-return]


def check_manifest(files: Any, where: str) -> None:
    """Refuse what is no mapping of paths to digests, or holds a path that a folder cannot have or that leaves it."""
    if not isinstance(files, dict):
        raise InputError("not a manifest", where=where, how="find out who wrote it")
    check_names(files, where)
    for path, digest in files.items():
        if any(str(parent) in files for parent in PurePosixPath(path).parents):
            raise InputError(f"a path below a file: {path[:200]!r}", where=where, how="find out who wrote the manifest")
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise InputError(f"no digest for {path[:200]!r}", where=where, how="find out who wrote the manifest")


def _manifest(bucket: Bucket, digest: str) -> bytes | None:
    """The text of a manifest that has this digest; None where there is none."""
    key = key_of(digest)
    for _ in range(TRIES):
        data = bucket.read(key)
        if data is None or sha256_bytes(data) == digest:
            return data
    raise bucket.damaged(key)
