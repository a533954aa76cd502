"""Records and aliases: writes on a condition, whose outcome is known also when the answer was lost.

A write can take effect although its answer never arrives. Its repetition then meets what it wrote itself, and the
server says that the condition does not hold. Equal content would prove nothing, for two writers may write the same. So
every write carries a random number, and with it those of the writes before it, in the object's metadata, which the
server stores together with the content. A writer that finds its number there has won, also when others have written
since. One that does not, and sees that the numbers go back to the version that it meant to replace, has lost. In the
rare case where they do not go back that far, it is unknown, and the error says so.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.files import sha256_bytes
from components.registry.base import Conflict, Unavailable
from components.registry.s3.bucket import Bucket, checksum
from components.registry.s3.retries import Damaged, may_have_succeeded

WRITERS, CONTENT = "evenkeel-writers", "evenkeel-sha256"
"""Names of the metadata: numbers of the last writes, the newest last; digest of the content."""
REMEMBERED = 64
"""Of S3's 2 KB for metadata, this takes 1.1."""
UNKNOWN = "-"
"""Stands for a write that was not made by this class."""
ABSENT = {"NoSuchKey": None}
REFUSED = {"PreconditionFailed": None, **ABSENT}


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was read: its content, its version (the ETag) and who wrote it."""

    data: bytes
    version: str
    writers: tuple[str, ...]


class Objects:
    """Small objects in a bucket, under names that start with ``folder``."""

    def __init__(self, bucket: Bucket, folder: str = "objects/") -> None:
        self._bucket, self._folder = bucket, folder

    def read(self, key: str) -> Stored | None:
        """The object, or None where there is none. Its content is what its writer wrote."""
        name = self._folder + key

        def send() -> Stored | None:
            answer = self._bucket.client.get_object(Bucket=self._bucket.name, Key=self._bucket.prefix + name)
            data, metadata = self._bucket.content(answer, name), answer.get("Metadata", {})
            if metadata.get(CONTENT, digest := sha256_bytes(data)) != digest:
                raise Damaged
            return Stored(data, answer["ETag"], _writers(metadata))

        return self._bucket.run("get_object", name, send, ABSENT)

    def create(self, key: str, data: bytes) -> str:
        """Write an object that is not there; returns its version.

        Raises:
            Conflict: it is.
        """
        return self._write(key, data, {"IfNoneMatch": "*"}, before=())

    def replace(self, key: str, data: bytes, expected: Stored) -> str:
        """Write an object that is still what was read; returns its new version.

        Raises:
            Conflict: it is something else now.
        """
        return self._write(key, data, {"IfMatch": expected.version}, before=expected.writers)

    def keys(self, prefix: str) -> list[str]:
        """The keys that start with ``prefix``, sorted."""
        start = self._bucket.prefix + self._folder
        found = self._bucket.list("list_objects_v2", "Contents", Prefix=start + prefix)
        return sorted(entry["Key"].removeprefix(start) for entry in found)

    def _write(self, key: str, data: bytes, condition: Mapping[str, str], before: tuple[str, ...]) -> str:
        name, mine, doubt = self._folder + key, secrets.token_hex(8), False
        metadata = {WRITERS: ",".join((*before, mine)[-REMEMBERED:]), CONTENT: sha256_bytes(data)}

        def send() -> str | None:
            nonlocal doubt
            try:
                return str(self._put(name, data, metadata, condition)["ETag"])
            except Exception as error:
                doubt = doubt or may_have_succeeded(error)
                raise

        try:
            version = self._bucket.run("put_object", name, send, REFUSED)
        except Unavailable:
            found = self.read(key) if doubt else None
            if found is None or mine not in found.writers:
                raise
            return _version_of(mine, found)
        if version is not None:
            return version
        found = self.read(key)
        if found is not None and mine in found.writers:
            return _version_of(mine, found)
        if doubt and not _continues_history(before, found):
            raise Unavailable(
                "it is unknown whether this write took effect before others did",
                where=self._bucket.where(name),
                how="read the object, and do again what is missing",
            )
        raise self.conflict(key)

    def conflict(self, key: str) -> Conflict:
        """The error of a write that came too late."""
        where = self._bucket.where(self._folder + key)
        return Conflict("someone else has written this object", where=where, how="read it again and retry")

    def _put(self, name: str, data: bytes, metadata: Mapping[str, str], condition: Mapping[str, str]) -> Any:
        return self._bucket.client.put_object(
            Bucket=self._bucket.name,
            Key=self._bucket.prefix + name,
            Body=data,
            ChecksumSHA256=checksum(hashlib.sha256(data).digest()),
            Metadata=dict(metadata),
            **condition,
        )


def _writers(metadata: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(metadata.get(WRITERS, UNKNOWN).split(","))


def _version_of(mine: str, found: Stored) -> str:
    """The version that this write made. Where others have written since it is one that no swap will find."""
    return found.version if found.writers[-1] == mine else f"replaced {mine}"


def _continues_history(before: tuple[str, ...], found: Stored | None) -> bool:
    """Whether the history of what was found includes all that came after ``before``."""
    if found is None:
        return False
    return before[-1] in found.writers if before else len(found.writers) < REMEMBERED
