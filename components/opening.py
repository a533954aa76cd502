"""Opening what a person names: regular files only.

A pipe without a writer never opens, and ``/dev/zero`` never ends. Folders, devices, pipes and sockets are refused after
the file is open, so that nothing can take its place between the look and the reading.
"""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from components.errors import InputError

MEBIBYTE = 2**20
MOST_TEXT = 64 * MEBIBYTE
"""Bytes of a file that is read as a whole: text, JSON, CSV."""
MOST_CONFIGURATION = MEBIBYTE
"""Bytes of a configuration, a health file or a policy."""
MOST_PATH = 4095
"""Bytes of a path that Linux takes."""
MOST_NAME = 255
"""Bytes of one name in a path that its filesystems take."""
SHOWN = 200
"""Characters of a path that is too long which an error shows."""
CHECK_PATH = "check the path in the configuration"
CHECK_PERMISSIONS = "check its permissions"
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
_WITHOUT_WAITING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def open_regular(path: Path, *, how: str = CHECK_PATH) -> BufferedReader:
    """Open a regular file to read its bytes. It never waits.

    Args:
        how: what to do where there is no such file.

    Raises:
        InputError: there is no such file, it cannot be read, the path is impossible, or it is something else than a
            regular file (a folder, a pipe, a device, a socket).
    """
    if problem := impossible(path):
        raise InputError(problem, where=_short(path), how="correct the path")
    try:
        handle = os.open(path, _WITHOUT_WAITING)
    except FileNotFoundError as error:
        raise InputError("file not found", where=path, how=how) from error
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        if kind := _irregular(os.fstat(handle).st_mode):
            raise _not_a_file(path, kind)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: Path, *, most: int = MOST_TEXT, how: str = CHECK_PATH) -> bytes:
    """All bytes of a regular file of no more than ``most``; see `open_regular`.

    Raises:
        InputError: as `open_regular`, or the file is larger.
    """
    with open_regular(path, how=how) as file:
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise unreadable(path, error) from error
    if len(data) > most:
        what = f"larger than {most / MEBIBYTE:,.0f} MiB, the limit of a file that is read as a whole"
        raise InputError(what, where=path, how="check that this is the file that you mean, or make it smaller")
    return data


def check_regular_or_folder(path: Path, *, how: str = CHECK_PATH) -> None:
    """Refuse what is neither a file nor a folder.

    Raises:
        InputError: nothing is there, the path is impossible, or it is a pipe, a device or a socket.
    """
    if problem := impossible(path):
        raise InputError(problem, where=_short(path), how="correct the path")
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("input not found", where=path, how=how) from error
    except OSError as error:
        raise unreadable(path, error) from error
    if not stat.S_ISDIR(mode) and (kind := _irregular(mode)):
        raise _not_a_file(path, kind)


def check_kind(path: Path, *, folder: bool, how: str = CHECK_PATH) -> None:
    """Refuse what is neither a file nor a folder, and the one where the other must be.

    Raises:
        InputError: as `check_regular_or_folder`, or it is the other.
    """
    check_regular_or_folder(path, how=how)
    if path.is_dir() and not folder:
        raise _not_a_file(path, "a folder")
    if folder and not path.is_dir():
        raise InputError("is a file, not a folder", where=path, how="name the folder that holds it")


def check_working_folder() -> None:
    """Refuse to begin in a folder that was deleted: no relative path leads anywhere from there.

    Raises:
        InputError: it was.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise InputError(
            "the working folder was deleted", where=os.environ.get("PWD") or ".", how="change to another folder (`cd`)"
        ) from error


def impossible(path: Path | str) -> str:
    """Why no file can have this path; empty where one can."""
    data = os.fsencode(path)
    if b"\0" in data:
        return "the path holds a NUL character"
    longest = max(map(len, data.split(b"/")))
    if len(data) > MOST_PATH or longest > MOST_NAME:
        return f"the path is too long: {len(data):,} bytes, its longest name {longest:,}"
    return ""


def unreadable(path: Path, error: OSError) -> InputError:
    """The error for what the operating system says about reading a file."""
    return InputError(f"cannot read: {error.strerror or error}", where=path, how=CHECK_PERMISSIONS)


def _irregular(mode: int) -> str:
    """What it is instead of a regular file; empty where it is one."""
    if stat.S_ISREG(mode):
        return ""
    return next((kind for test, kind in _KINDS if test(mode)), "something else")


def _not_a_file(path: Path, kind: str) -> InputError:
    how = "name a file inside it" if kind == "a folder" else "save what it gives to a file, and name that file"
    return InputError(f"is {kind}, not a file", where=path, how=how)


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
