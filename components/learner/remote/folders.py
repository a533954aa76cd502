"""Folders over a connection, for a run and ranks that see none in common.

A folder is sent in pieces of files, one message each, and a last message that names every file with its digest. Nobody
holds more of it in memory than a piece.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from components.errors import InputError, PeerLost
from components.files import manifest, os_errors
from components.learner.ranks import Ranks
from components.learner.remote.wire import Message
from components.registry.names import check_names

PIECE = 1 << 26
"""Bytes of a file in one message."""
LONGEST = 1024
"""Bytes of a folder's path."""


class Sent(NamedTuple):
    """One message of a folder: header fields, and the bytes that go with them."""

    header: dict[str, Any]
    tensors: dict[str, Tensor]


def pieces(folder: Path, names: Sequence[str] | None = None) -> Iterator[Sent]:
    """The messages of a folder, or of some files of it, in order."""
    digests: dict[str, str] = {}
    for name in manifest(folder, lambda _: "") if names is None else names:
        digest = hashlib.sha256()
        with os_errors("read", folder / name), (folder / name).open("rb") as file:
            at, data = 0, file.read(PIECE)
            while data or not at:  # an empty file is one piece, too
                yield Sent({"file": name, "at": at}, {"data": _tensor(data)})
                digest.update(data)
                at, data = at + (len(data) or 1), file.read(PIECE)
        digests[name] = digest.hexdigest()
    yield Sent({"files": digests}, {})


def _tensor(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.zeros(0, dtype=torch.uint8)


class Arriving:
    """A folder that is being received."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        self.whole = False
        """The last message has come, and all is as it was sent."""

    def take(self, message: Message) -> None:
        """Write what one message holds.

        Raises:
            PeerLost: something is missing, or has changed on its way.
            InputError: a name leads elsewhere, or it cannot be written here.
        """
        if "files" in message.header:
            self._compare(message.header["files"])
            self.whole = True
            return
        name, at = message.header["file"], message.header["at"]
        check_names([name], where=self._folder)
        if at != self._sizes.get(name, 0):
            raise self.torn(f"{name} goes on at byte {at}, and {self._sizes.get(name, 0)} have come")
        data = message.tensors["data"].numpy().tobytes()
        path = self._folder / name
        with os_errors("write", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab" if at else "wb") as file:
                file.write(data)
        self._digests.setdefault(name, hashlib.sha256()).update(data)
        self._sizes[name] = at + len(data)

    def _compare(self, files: Mapping[str, str]) -> None:
        found = {name: digest.hexdigest() for name, digest in self._digests.items()}
        if found != dict(files):
            odd = sorted(name for name in files.keys() | found.keys() if files.get(name) != found.get(name))
            raise self.torn(f"not as they were sent: {', '.join(odd[:3])}")

    def torn(self, why: str) -> PeerLost:
        """What is said where it is not all there."""
        how = "look at the network between the run and its ranks; started again, the run goes on from its checkpoint"
        return PeerLost(f"files were damaged on their way: {why}", where=self._folder, how=how)


class Arrivals:
    """Folders that came to the ranks, one of each name. The ranks of one machine have them in common: the first of them
    writes.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self._own = ranks, tempfile.TemporaryDirectory(prefix="evenkeel-", ignore_cleanup_errors=True)
        self._arriving: dict[str, Arriving] = {}
        self._root: Path | None = None
        self._writes = False

    def folder(self, name: str) -> Path:
        """Where a folder of this name is, on every rank; collective the first time."""
        if self._root is None:
            first, self._root = shared_with(self._ranks, node_of(os.environ, self._ranks.rank), Path(self._own.name))
            self._writes = first
        return self._root / name

    def take(self, message: Message) -> None:
        """One message of a folder, on every rank."""
        name = message.header["name"]
        check_names([name], where="learner.ranks")
        folder = self.folder(name)
        if not self._writes:
            return
        if name not in self._arriving or self._arriving[name].whole:
            shutil.rmtree(folder, ignore_errors=True)
            self._arriving[name] = Arriving(folder)
        self._arriving[name].take(message)

    def own(self, name: str) -> Path:
        """An empty folder of this rank alone."""
        return Path(tempfile.mkdtemp(dir=self._own.name, prefix=f"{name}-"))

    def close(self) -> None:
        """Remove all of them."""
        self._own.cleanup()


def node_of(environment: Mapping[str, str], rank: int) -> int:
    """The number of this rank's machine, as torchrun says; each its own, where nobody does."""
    text = environment.get("GROUP_RANK", "")
    return int(text) if text.isascii() and text.isdigit() else rank


def shared_with(ranks: Ranks, node: int, own: Path) -> tuple[bool, Path]:
    """Whether this rank is the first of its node, and the folder of the one that is; collective."""
    data = os.fsencode(own)
    if len(data) > LONGEST:
        raise InputError("the path of the temporary folder is too long", where=own, how="set TMPDIR to a shorter one")
    rows = torch.zeros(ranks.size, 2 + LONGEST, dtype=torch.long)
    rows[ranks.rank, 0], rows[ranks.rank, 1] = node, len(data)
    rows[ranks.rank, 2 : 2 + len(data)] = torch.tensor(list(data))
    rows = ranks.total(rows)
    first = int((rows[:, 0] == node).nonzero()[0])
    length = int(rows[first, 1])
    return first == ranks.rank, Path(os.fsdecode(bytes(rows[first, 2 : 2 + length].tolist())))
