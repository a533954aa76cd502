"""Templates that are alike: MinHash signatures on disk, and locality-sensitive hashing over them in bands.

The index of `datasketch` holds Python objects for every row and band, some kilobytes a row. Here a signature is 512
bytes in a temporary file, and a band of all of them is one sorted array at a time. Pairs are joined as they are
found: `scipy.sparse.csgraph` wants all of them in memory.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
from datasketch import MinHash
from numpy.typing import NDArray

from components.config.data import NearDuplicateSettings

PERMUTATIONS = 128
ROWS = 8
"""Of a band. Sixteen bands find a pair of similarity 0.9 with 99.99 %, one of 0.8 with 95 %; signatures then decide."""
BLOCK = 1 << 14
Indices = NDArray[np.int64]


class NearDuplicates:
    """Collects texts, then groups those that belong together."""

    def __init__(self, settings: NearDuplicateSettings) -> None:
        self._settings = settings
        self._signature = MinHash(PERMUTATIONS, seed=1, hashfunc=zlib.crc32)  # used again: to make one takes long
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
        self._count = 0

    def add(self, text: str) -> None:
        """The next text; its number is how many came before."""
        self._signature.clear()
        self._signature.update_batch(self._shingles(text))
        self._file.write(self._signature.hashvalues.astype(np.uint32).tobytes())
        self._count += 1

    def groups(self) -> Indices:
        """For every text the number of the first one of its group. Being alike is passed on within a group."""
        self._file.flush()
        bands = range(0, PERMUTATIONS, ROWS) if self._count else ()
        pairs = (pair for start in bands for pair in self._pairs(start))
        return joined(np.arange(self._count, dtype=np.int64), pairs)

    def _pairs(self, start: int) -> Iterator[tuple[int, int]]:
        """Pairs of a band that are alike: neighbours of a run of equal keys, and every member with its first."""
        keys = self._band(start)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        same = np.flatnonzero(keys[1:] == keys[:-1])
        firsts = np.searchsorted(keys, keys[same + 1])
        signatures = np.memmap(self._file, np.uint32, "r", shape=(self._count, PERMUTATIONS))
        lefts = np.concatenate([order[same], order[firsts]])
        rights = np.concatenate([order[same + 1]] * 2)
        for at in range(0, len(lefts), BLOCK):
            left, right = lefts[at : at + BLOCK], rights[at : at + BLOCK]
            alike = (signatures[left] == signatures[right]).mean(axis=1) >= self._settings.threshold
            yield from zip(left[alike].tolist(), right[alike].tolist(), strict=True)

    def _band(self, start: int) -> NDArray[np.uint64]:
        """One 64-bit key of each signature's band. Read in blocks: a map of the whole file would count as memory."""
        keys = np.zeros(self._count, np.uint64)
        self._file.seek(0)
        for low in range(0, self._count, BLOCK):
            block = np.frombuffer(self._file.read(4 * PERMUTATIONS * BLOCK), np.uint32).reshape(-1, PERMUTATIONS)
            part = block[:, start : start + ROWS].astype(np.uint64)
            mixed = np.full(len(part), start + 1, np.uint64)
            for column in part.T:  # the finaliser of splitmix64 between columns
                mixed = (mixed ^ column) * np.uint64(0xBF58476D1CE4E5B9)
                mixed ^= mixed >> np.uint64(29)
            keys[low : low + BLOCK] = mixed
        return keys

    def _shingles(self, text: str) -> set[bytes]:
        size = self._settings.size
        if self._settings.shingles == "words":
            words = text.encode("utf-8", "replace").split()
            return {b" ".join(words[i : i + size]) for i in range(max(1, len(words) - size + 1))}
        wide = text.encode("utf-32-le", "replace")  # four bytes a character
        return {wide[i : i + 4 * size] for i in range(0, max(1, len(wide) - 4 * size + 1), 4)}


def _root(parents: Indices, i: int) -> int:
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = int(parents[i])
    return i


def joined(groups: Indices, pairs: Iterable[tuple[int, int]]) -> Indices:
    """The groups with the members of every pair in one."""
    parents = groups.copy()
    for left, right in pairs:
        a, b = _root(parents, left), _root(parents, right)
        parents[max(a, b)] = min(a, b)
    return np.array([_root(parents, i) for i in range(len(parents))], np.int64)
