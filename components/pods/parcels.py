"""Files in a bucket under one manifest, which is written last: a parcel is there whole or not at all.

Files are stored under their digest, so that what two parcels share is sent once, and what arrives is verified. Two
writers cannot disturb each other: they write the same bytes under the same name, and each has manifests of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.errors import InputError
from components.files import dump_json, os_errors, sha256_bytes
from components.registry.s3.bucket import BLOBS, Bucket, checksum
from components.registry.s3.digested import Digested, digest_file
from components.registry.s3.downloads import get_blobs
from components.registry.s3.probe import capabilities
from components.registry.s3.trees import check_manifest
from components.registry.s3.uploads import put_blobs

MANIFESTS = "manifests/"


@dataclass(frozen=True, slots=True)
class Parcel:
    """The files that a manifest names: path -> sha256. ``name`` is its own in the bucket."""

    name: str
    files: Mapping[str, str]

    @property
    def blobs(self) -> set[str]:
        return set(self.files.values())


@dataclass(slots=True)
class Sender:
    """Puts parcels; files that it has digested before and that have not changed are not read again."""

    bucket: Bucket
    _digested: dict[Path, tuple[tuple[int, ...], Digested]] = field(default_factory=dict)
    _proved: set[str] = field(default_factory=set)

    def put(self, name: str, files: Mapping[str, Path], note: Mapping[str, Any] | None = None) -> Parcel:
        """Store files under the names that they are to have, and then their manifest, which holds the ``note`` for
        people. What the bucket has is not sent again; that it still has it is looked up.

        Raises:
            InputError: a file is gone or has changed meanwhile, or its name is one that no folder should have.
            Unavailable: the server does not answer.
        """
        names = sorted(files)
        checked = capabilities(self.bucket).checksums
        stored = put_blobs(
            self.bucket,
            (self._digest(files[name]) for name in names),
            read_back=lambda file: not checked and file.sha256 not in self._proved,
        )
        digests = {name: file.sha256 for name, file in zip(names, stored, strict=True)}
        self._proved.update(digests.values())
        check_manifest(digests, where=self.bucket.where(MANIFESTS + name))
        data = dump_json({"files": digests, "note": dict(note or {})}).encode()
        self.bucket.call(
            "put_object", MANIFESTS + name, Body=data, ChecksumSHA256=checksum(bytes.fromhex(sha256_bytes(data)))
        )
        return Parcel(name, digests)

    def _digest(self, path: Path) -> Digested:
        with os_errors("read", path):
            found = os.stat(path)
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
        known = self._digested.get(path)
        if known is None or known[0] != stamp:
            known = self._digested[path] = stamp, digest_file(path, self.bucket.transfer.part_size)
        return known[1]


def parcels(bucket: Bucket) -> list[str]:
    """Names of all parcels, sorted."""
    start = bucket.prefix + MANIFESTS
    return sorted(one["Key"].removeprefix(start) for one in bucket.list("list_objects_v2", "Contents", Prefix=start))


def read(bucket: Bucket, name: str) -> Parcel:
    """A parcel's manifest.

    Raises:
        InputError: there is none, or it is not one of ours.
    """
    where, data = bucket.where(MANIFESTS + name), bucket.read(MANIFESTS + name)
    if data is None:
        raise InputError("no such files in the bucket", where=where, how="submit the run again, which puts them there")
    try:
        files = json.loads(data)["files"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError("not a manifest", where=where, how="find out who wrote it") from None
    check_manifest(files, where=where)
    return Parcel(name, files)


def fetch(bucket: Bucket, parcel: Parcel, folder: Path) -> None:
    """Write a parcel's files into a folder, each under its name when its digest is right. What is there already with
    that digest stays; what else is there is left alone.

    Raises:
        InputError: a file is gone or damaged in the bucket, or cannot be written here.
    """
    get_blobs(bucket, {folder / name: digest for name, digest in parcel.files.items()})


def remove(bucket: Bucket, names: Iterable[str], blobs: Iterable[str]) -> None:
    """Take manifests away, and then files that none needs any more. What is gone already is no error."""
    for key in (*(MANIFESTS + name for name in names), *(BLOBS + sha256 for sha256 in sorted(blobs))):
        bucket.call("delete_object", key)


def clear(bucket: Bucket) -> int:
    """Take all parcels away, whole or not, and whatever else lies there, manifests first; returns how many objects."""
    listed = bucket.list("list_objects_v2", "Contents", Prefix=bucket.prefix)
    keys = [one["Key"].removeprefix(bucket.prefix) for one in listed]
    for key in sorted(keys, key=lambda key: not key.startswith(MANIFESTS)):
        bucket.call("delete_object", key)
    return len(keys)
