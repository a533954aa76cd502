"""The folder that new data arrive in; and the configured source and every file that ever joined it, as one file.

Copies of the files that joined are kept, so that their folder may be emptied. The joined file is named by its digest
and made only when something joins.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from components.errors import InputError
from components.files import flushed, os_errors, read_json, sha256_bytes, sha256_file, write_json
from components.registry.clock import stamp, utc_now
from flows.retraining.ledger import JoinedFile, Ledger, current

SUFFIX = ".jsonl"
SETTLED = 60.0
"""Seconds since the last write: a younger file may still be written."""
LONGEST_LINE = 2**24
"""Bytes, as in `components.data.sources`: what follows the last line break of a file and is longer is no row."""


def scan(folder: Path, now: float) -> tuple[list[Path], list[str]]:
    """The whole JSON-lines files of a folder by name, and a line for each that is skipped, which says why. Hidden files
    are ignored.

    Args:
        now: when the night began, in seconds since the epoch; what was written since waits as well.

    Raises:
        InputError: there is no such folder, or a file of it cannot be read.
    """
    if not folder.is_dir():
        raise InputError("no folder for incoming data", where=folder, how="make it (mkdir), or name another one")
    whole, skipped = [], []
    with os_errors("read", folder):
        for path in sorted(folder.iterdir()):
            if path.name.startswith("."):
                continue
            shown = os.fsencode(path.name).decode(errors="backslashreplace")
            why = "is not read: its name is not Unicode" if shown != path.name else _skip_reason(path, now)
            if why:
                skipped.append(f"{shown} {why}")
            else:
                whole.append(path)
    return whole, skipped


def _skip_reason(path: Path, now: float) -> str:
    """Why a file does not join; empty if it joins."""
    if path.is_symlink() or not path.is_file():
        return "is not read: it is no file of its own (a folder, a link)"
    if path.suffix != SUFFIX:
        return f"is not read: its name does not end in {SUFFIX}"
    status = path.stat()
    if now - SETTLED < status.st_mtime < max(now, time.time()) + SETTLED:  # later than that, a clock was wrong
        return "waits for the next night: it was written less than a minute ago"
    if not status.st_size:
        return "waits for the next night: it is empty"
    if not _is_complete(path, status.st_size):
        return "waits for the next night: its last line is not whole"
    return ""


def _is_complete(path: Path, size: int) -> bool:
    """Whether the last line has its line break, or is a JSON object without one."""
    with path.open("rb") as file:
        file.seek(max(0, size - LONGEST_LINE))
        tail = file.read(LONGEST_LINE)
    if tail.endswith(b"\n"):
        return True
    try:
        return isinstance(json.loads(tail.rsplit(b"\n", 1)[-1].decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes that a file has now, a mebibyte at a time."""
    left = os.stat(path).st_size
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, 2**20))):
            left -= len(block)
            yield block


KEPT = 3
"""Joined files that are kept: tonight's, and those of runs that may still be continued."""
ALIKE = 0.5
"""Of the rows of the shorter of two files of one name: from there on they are two versions of one file. A name that is
used again for other data, as a log's is, has none or few rows in common with what it stood for before."""


def add_new_files(ledger: Ledger, incoming: Sequence[Path], source_sha256: str) -> list[str]:
    """Add the files that are new; returns the others with the reason why they are skipped, a line each.

    A newer version of a file that joined takes its place, see `earlier_version`. What is gone from the folder
    leaves unless a run with it has ended: so a file that breaks the runs can be corrected or removed.
    """
    digests = {}
    for path in incoming:
        with os_errors("read", path):
            digests[path] = sha256_file(path)
    gone = ledger.keep(set(digests.values()))
    skipped = [f"{row.name} no longer joins: it left or changed before a night with it had ended" for row in gone]
    for path, digest in digests.items():
        name, known = path.name, _known(ledger, path.name, digest)
        if digest == source_sha256:
            skipped.append(f"{name} is left out: it is the configured source itself")
        elif known is None:
            row = _store(ledger, path, digest)
            if row is None:
                skipped.append(f"{name} waits for the next night: it changed while it was read")
            else:
                ledger.add(row)
        elif known.name != name:
            skipped.append(f"{name} has nothing new: it has the content of {known.name}")
    return skipped


def _known(ledger: Ledger, name: str, digest: str) -> JoinedFile | None:
    """The file of this content, unless the one of this name was set back to what it had been."""
    seen = ledger.seen()
    now = current(seen)
    set_back = any(row.name == name for row in now) and all(row.sha256 != digest for row in now)
    return None if set_back else next((row for row in reversed(seen) if row.sha256 == digest), None)


def _store(ledger: Ledger, path: Path, digest: str) -> JoinedFile | None:
    """Copy a file to where it stays; None where it is not what it was a moment ago."""
    target, name = ledger.part(digest), path.name
    copied, rows = _write(target.parent, blocks(path), lambda _: target)
    if copied != digest:
        target.unlink()
        return None
    earlier = earlier_version(ledger, name, target)
    replaced = earlier.sha256 if earlier else None
    return JoinedFile(digest, name, target.stat().st_size, rows, stamp(utc_now()), replaced)


def join(
    ledger: Ledger, source: Path, source_sha256: str, rows: Sequence[JoinedFile], incoming: Path
) -> tuple[Path, str]:
    """The joined file and its digest; made unless it is there.

    Raises:
        InputError: a file that joined earlier is gone, and so is what was made of it.
    """
    folder = ledger.folder / "joined"
    recipe = sha256_bytes("\n".join([source_sha256, *(row.sha256 for row in rows)]).encode())
    note = folder / f"{recipe}.json"
    if note.exists():
        digest = str(read_json(note)["sha256"])
        if (folder / f"{digest}.jsonl").is_file():
            return folder / f"{digest}.jsonl", digest
    files = [source, *(_part_of(ledger, row, incoming) for row in rows)]
    digest, _ = _write(folder, _chained(files), lambda digest: folder / f"{digest}.jsonl")
    write_json(note, {"sha256": digest, "source": source_sha256, "files": [row.sha256 for row in rows]})
    newest = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in newest[KEPT:]:  # they can be made again from their parts
        path.unlink()
    return folder / f"{digest}.jsonl", digest


def _part_of(ledger: Ledger, row: JoinedFile, incoming: Path) -> Path:
    for path in (ledger.part(row.sha256), *sorted(incoming.glob("*.jsonl"))):
        if path.is_file() and path.stat().st_size == row.bytes and sha256_file(path) == row.sha256:
            return path
    raise InputError(
        f"a file that was trained on is gone: {row.name} (sha256 {row.sha256[:12]}, first seen {row.at})",
        where=ledger.part(row.sha256),
        how=f"put it into {incoming} again, or move {ledger.folder} away to start over with the configured source",
    )


def _chained(files: Sequence[Path]) -> Iterator[bytes]:
    """The bytes of all files, each ended by a line break. A byte order mark belongs at the beginning of a text only."""
    for number, path in enumerate(files):
        last = b"\n"
        for index, block in enumerate(blocks(path)):
            begins = number > 0 and index == 0 and block.startswith(codecs.BOM_UTF8)
            yield block[len(codecs.BOM_UTF8) :] if begins else block
            last = block[-1:]
        if last != b"\n":
            yield b"\n"


def _write(folder: Path, content: Iterator[bytes], name: Callable[[str], Path]) -> tuple[str, int]:
    """Write a file atomically under the name that its digest gives it; returns digest and number of rows."""
    digest, rows, last = hashlib.sha256(), 0, b"\n"

    def counted() -> Iterator[bytes]:
        nonlocal rows, last
        for block in content:
            digest.update(block)
            rows, last = rows + block.count(b"\n"), block[-1:]
            yield block

    with flushed(folder / "joined", counted()) as temporary:  # the place, until the digest is known
        os.replace(temporary, name(digest.hexdigest()))
    return digest.hexdigest(), rows + (last != b"\n")


def earlier_version(ledger: Ledger, name: str, path: Path) -> JoinedFile | None:
    """The file whose place the one at ``path`` takes.

    One with whose bytes it begins, whatever either is called; else one of its name that is alike.
    """
    rows, size = current(ledger.seen()), path.stat().st_size
    with os_errors("read", path):
        beginnings = _beginnings(path, {row.bytes for row in rows if row.bytes < size})
        begun = (row for row in rows if beginnings.get(row.bytes) == row.sha256)
        same_name = (row for row in rows if row.name == name and _alike(ledger.part(row.sha256), path))
        return next(begun, None) or next(same_name, None)


def _beginnings(path: Path, sizes: Iterable[int]) -> dict[int, str]:
    """Size in bytes -> hex digest of that much of the file."""
    digest, done, found = hashlib.sha256(), 0, {}
    with path.open("rb") as file:
        for size in sorted(sizes):
            while done < size and (block := file.read(min(size - done, 2**20))):
                digest.update(block)
                done += len(block)
            found[size] = digest.hexdigest()
    return found


def _alike(earlier: Path, later: Path) -> bool:
    if not earlier.is_file():
        return False
    first, second = _rows(earlier), _rows(later)
    return len(first & second) >= ALIKE * min(len(first), len(second)) > 0


def _rows(path: Path) -> set[int]:
    with path.open("rb") as file:
        return {hash(row) for line in file if (row := line.strip())}
