"""Reading and writing files so that a crash never leaves half of one.

Every write goes to a temporary name next to the target, is flushed to disk and renamed (`directories` does the same
with folders). Reading names the line that is wrong.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from components.errors import InputError, MachineError
from components.opening import CHECK_PATH, MOST_TEXT, check_regular_or_folder, open_regular, read_regular, unreadable
from components.working import working

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Errors of a disk that is full or read-only."""


@contextlib.contextmanager
def os_errors(action: str, path: Path) -> Iterator[None]:
    """Turn an ``OSError`` (full disk, no permission, missing folder) into an error that states what to do."""
    try:
        yield
    except (OSError, SafetensorError) as caught:
        error = _as_os_error(caught)
        kind = MachineError if error.errno in DISK else InputError
        raise kind(
            f"cannot {action}: {error.strerror or error}",
            where=error.filename or path,
            how="check that the path exists, that you may use it, and that the disk has room (`df -h`)",
        ) from caught


def _as_os_error(error: OSError | SafetensorError) -> OSError:
    """safetensors reports a failed write as its own type, with the number in the text; anything else is a bug."""
    if isinstance(error, OSError):
        return error
    number = re.search(r"os error (\d+)", str(error))
    if number is None:
        raise error
    return OSError(int(number[1]), os.strerror(int(number[1])))


def fsync_directory(directory: Path) -> None:
    """Make a rename inside ``directory`` survive a power cut."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def flushed(path: Path, data: bytes | Iterator[bytes], mode: int = 0o644) -> Iterator[str]:
    """``data`` or its pieces, safe on the disk, under a temporary name next to ``path``; the block gives it its place.

    Whatever the block has done to names survives a power cut afterwards, and the temporary one is gone.
    """
    with os_errors("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines([data] if isinstance(data, bytes) else data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, mode)
            yield name
        finally:
            Path(name).unlink(missing_ok=True)
        fsync_directory(path.parent)


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` atomically (temporary file, fsync, rename)."""
    with flushed(path, data) as name:
        os.replace(name, path)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 ``text`` to ``path`` atomically."""
    write_bytes(path, text.encode())


def dump_json(value: Any) -> str:
    """JSON with sorted keys and no NaN, so that equal values give equal bytes."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def load_json(text: str | bytes) -> Any:
    """A JSON value that `dump_json` could have written.

    Raises:
        ValueError: it is none, or it has NaN, an infinite number, or one that is too large to be finite.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:40]} is no finite number")
    return number


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as stable JSON, atomically."""
    write_text(path, dump_json(value))


def dump_line(row: Mapping[str, Any]) -> str:
    """One stable JSON line, newline included."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line, atomically."""
    write_text(path, "".join(dump_line(row) for row in rows))


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """Append one JSON line and flush it to disk; a torn last line is the most a crash can leave."""
    with os_errors("append to", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(dump_line(row).encode())
            file.flush()
            os.fsync(file.fileno())


def cut_torn_line(path: Path) -> None:
    """Remove an incomplete last line that a crash has left."""
    if not path.exists():
        return
    with os_errors("write", path), path.open("rb+") as file:
        text = file.read()
        if text and not text.endswith(b"\n"):
            file.truncate(text.rfind(b"\n") + 1)


def read_text(path: Path, *, most: int = MOST_TEXT, how: str = CHECK_PATH) -> str:
    """Read UTF-8 text of no more than ``most`` bytes.

    Raises:
        InputError: the file is missing, unreadable, no regular file, too large, or not UTF-8.
    """
    data = read_regular(path, most=most, how=how)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text (byte {error.start})", where=path, how="save it as UTF-8") from error
    text = text.removeprefix("\ufeff")  # a byte order mark, as Windows programs write it
    return text.replace("\r\n", "\n").replace("\r", "\n")  # as every text file of Python is read


def read_json(path: Path, *, how: str = "run the stage that writes it again") -> Any:
    """Read one JSON value; a malformed file names the line."""
    try:
        return json.loads(read_text(path, how=how))
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg}", where=f"{path}:{error.lineno}", how=how) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON that can be read: {error}", where=path, how=how) from error


def read_jsonl(path: Path, *, how: str = "fix or remove that line") -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines file; see `read_numbered_jsonl`."""
    return (row for _, row in read_numbered_jsonl(path, how=how))


def read_numbered_jsonl(path: Path, *, how: str = "fix or remove that line") -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number (from 1) and the object of each line that is not blank, one at a time.

    Raises:
        InputError: missing file, no regular one, or a line that is not a JSON object (the line number is named).
    """
    with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, _parse_line(line, f"{path}:{number}", how)
        except UnicodeDecodeError as error:
            raise InputError("not UTF-8 text", where=path, how="save it as UTF-8") from error
        except OSError as error:
            raise unreadable(path, error) from error


def keep_rows(path: Path, count: int) -> list[dict[str, Any]]:
    """Cut an append-only log back to its first ``count`` rows and return them; what follows may be torn by a crash."""
    cut_rows(path, count)
    return list(read_jsonl(path)) if count else []


def cut_rows(path: Path, count: int) -> None:
    """As `keep_rows`, without returning the rows: a log of any length is cut in place, a row in memory at a time."""
    if count == 0:
        path.unlink(missing_ok=True)
        return
    found = sum(1 for _ in itertools.islice(read_jsonl(path), count))
    if found < count:
        raise InputError(f"expected {count} rows, found {found}", where=path, how="delete the folder to start over")
    with os_errors("cut back", path), path.open("rb+") as file:
        line, kept = b"", 0
        while kept < count:
            line = file.readline()
            kept += bool(line.strip())
        file.truncate(file.tell())
        if not line.endswith(b"\n"):
            file.write(b"\n")
        file.flush()
        os.fsync(file.fileno())


def _parse_line(line: str, where: str, how: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg} at column {error.colno}", where=where, how=how) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or endless nesting
        raise InputError(f"not JSON that can be read: {error}", where=where, how=how) from error
    if not isinstance(row, dict):
        raise InputError(f"expected a JSON object, found {type(row).__name__}", where=where, how=how)
    return row


def sha256_bytes(data: bytes) -> str:
    """Hex sha256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def sha256_json(value: Any) -> str:
    """Hex sha256 of a value as `dump_json` writes it."""
    return sha256_bytes(dump_json(value).encode())


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file, read in blocks."""
    with os_errors("read", path), open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest(directory: Path, digest: Callable[[Path], str] = sha256_file) -> dict[str, str]:
    """Relative path -> sha256 of every file below ``directory``, sorted; ``digest`` computes it.

    Raises:
        InputError: the folder is missing, or holds a symbolic link (it could point outside what is digested), a pipe, a
            device, a socket, or a name that is not UTF-8 (no manifest could hold it).
    """
    if not directory.is_dir():
        raise InputError("folder not found", where=directory, how="check the path in the configuration")
    files = {}
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            raise InputError("symbolic link inside a digested folder", where=path, how="replace it by the file itself")
        if not path.is_dir():
            check_regular_or_folder(path)
            name = path.relative_to(directory).as_posix()
            try:
                name.encode()
            except UnicodeEncodeError as error:
                how = "rename or remove the file"
                raise InputError("the name of a file is not UTF-8", where=path, how=how) from error
            files[name] = digest(path)
    return files


def sha256_tree(directory: Path) -> str:
    """Digest of a folder: sha256 over its manifest, so names and contents both count."""
    with working(f"hashing {directory.name}"):
        return sha256_json(manifest(directory))


def sha256_path(path: Path) -> str:
    """Digest of a file or of a folder."""
    check_regular_or_folder(path)
    if path.is_dir():
        return sha256_tree(path)
    with working(f"hashing {path.name}"):
        return sha256_file(path)
