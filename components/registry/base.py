"""The seam: what the registry needs of a place to keep things."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from components.directories import write_directory
from components.errors import EvenkeelError, InputError
from components.registry.copying import copy_tree

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")
_DIGEST = re.compile(r"[0-9a-f]{64}")
LARGEST = 64 * 2**20
"""Bytes of a record; more is none of ours."""


class Conflict(EvenkeelError):
    """A compare-and-swap lost: the object is no longer at the expected version."""


class Unavailable(EvenkeelError):
    """The store did not answer in time. Of a write it is then not known whether it took effect: look, or write again.

    Everything that the registry writes may be written again: records and trees are put once, and swaps name what they
    replace.
    """


class Store(ABC):
    """Small objects under keys, and immutable folders under their digest.

    Keys are lower-case path-like names. A version identifies the content of an object; it is opaque to callers. Every
    write is durable when it returns, and all or nothing. Any call raises `Unavailable` where a store at the other end
    of a network does not answer.
    """

    @abstractmethod
    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Create an object; False, and nothing written, when the key exists.

        Of any number of callers one gets True, also where they all write the same content.
        """

    @abstractmethod
    def get(self, key: str) -> tuple[bytes, str] | None:
        """Content and version, or None when there is no such object."""

    @abstractmethod
    def compare_and_swap(self, key: str, data: bytes, expected: str | None) -> str:
        """Write an object only if it is at version ``expected`` (None: only if absent); returns the new version.

        Raises:
            Conflict: it is at another version.
        """

    def update(self, key: str, change: Callable[[bytes | None], bytes | None]) -> None:
        """Replace the content of an object (None: there is none) by what ``change`` makes of it, again where another
        writer was first; where it makes None, nothing is written."""
        while True:
            stored = self.get(key)
            data, version = (None, None) if stored is None else stored
            if (changed := change(data)) is None:
                return
            try:
                self.compare_and_swap(key, changed, version)
                return
            except Conflict:
                continue

    @abstractmethod
    def keys(self, prefix: str) -> list[str]:
        """The keys that start with ``prefix``, sorted."""

    @abstractmethod
    def put_tree(self, directory: Path, files: Mapping[str, str] | None = None) -> str:
        """Store a folder under the digest of its manifest, which is returned; storing it again does nothing.

        A tree is there once it is whole. What a killed call has stored of it is not stored twice.

        Args:
            files: its manifest, where that was just made: files are then compared with it while they are stored, and
                not digested before.

        Raises:
            InputError: it holds symbolic links or impossible names, it changed meanwhile, or what is stored under its
                digest is something else.
        """

    @abstractmethod
    def has_tree(self, digest: str) -> bool:
        """Whether a tree is stored under this digest. Its content is not looked at."""

    @abstractmethod
    def tree(self, digest: str) -> Path:
        """A local folder with the content of a stored tree, verified against its digest now. Not to be written to.

        Raises:
            InputError: not stored, or the content does not have this digest.
        """

    def fetch_tree(self, digest: str, target: Path) -> None:
        """A copy of a stored tree, verified, as the folder ``target``, which appears whole.

        Raises:
            InputError: as `tree`, or there is something at ``target``.
        """
        if target.exists() or target.is_symlink():
            raise InputError("there is something at this path", where=target, how="name a folder that is not there")
        source = self.tree(digest)
        write_directory(target, lambda staging: copy_tree(source, staging, digest))


@contextmanager
def reading(kind: str, where: str, how: str) -> Iterator[None]:
    """Raises InputError for whatever the block raises about content that is not ``kind``."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InputError) as error:
        what = error.what if isinstance(error, InputError) else error
        raise InputError(f"not {kind}: {what}", where=where, how=how) from error


def is_key(key: str) -> bool:
    """Whether this can be a key: nothing that leaves the store, or would not survive another kind of store."""
    return _KEY.fullmatch(key) is not None


def check_key(key: str) -> str:
    """``key`` itself.

    Raises:
        InputError: it could leave the store, or would not survive another kind of store.
    """
    if not is_key(key):
        how = "use lower-case letters, digits and . _ - between slashes"
        raise InputError("not a key of the registry", where=key, how=how)
    return key


def check_digest(digest: str) -> str:
    """``digest`` itself.

    Raises:
        InputError: it is not a sha256 in lower-case hexadecimal.
    """
    if not _DIGEST.fullmatch(digest):
        raise InputError("not a sha256 digest", where=digest, how="give 64 lower-case hexadecimal digits")
    return digest
