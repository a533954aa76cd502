"""The seam: what the registry needs of a place to keep things."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path

from components.errors import EvenkeelError, InputError

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Conflict(EvenkeelError):
    """A compare-and-swap lost: the object is no longer at the expected version."""


class Store(ABC):
    """Small objects under keys, and immutable folders under their digest.

    Keys are lower-case path-like names. A version identifies the content of an object; it is opaque to callers. Every
    write is durable when it returns, and all or nothing.
    """

    @abstractmethod
    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Create an object; False, and nothing written, when the key exists."""

    @abstractmethod
    def get(self, key: str) -> tuple[bytes, str] | None:
        """Content and version, or None when there is no such object."""

    @abstractmethod
    def compare_and_swap(self, key: str, data: bytes, expected: str | None) -> str:
        """Write an object only if it is at version ``expected`` (None: only if absent); returns the new version.

        Raises:
            Conflict: it is at another version.
        """

    @abstractmethod
    def keys(self, prefix: str) -> list[str]:
        """The keys that start with ``prefix``, sorted."""

    @abstractmethod
    def put_tree(self, directory: Path) -> str:
        """Store a folder under the digest of its manifest, which is returned; storing it again does nothing."""

    @abstractmethod
    def tree(self, digest: str) -> Path:
        """A local folder with the content of a stored tree, verified against its digest.

        Raises:
            InputError: not stored, or the content does not have this digest.
        """


def check_key(key: str) -> str:
    """``key`` itself.

    Raises:
        InputError: it could leave the store, or would not survive another kind of store.
    """
    if not _KEY.fullmatch(key):
        raise InputError(
            "not a key of the registry", where=key, how="use lower-case letters, digits and . _ - between slashes"
        )
    return key


def check_digest(digest: str) -> str:
    """``digest`` itself.

    Raises:
        InputError: it is not a sha256 in lower-case hexadecimal.
    """
    if not _DIGEST.fullmatch(digest):
        raise InputError("not a sha256 digest", where=digest, how="give 64 lower-case hexadecimal digits")
    return digest
