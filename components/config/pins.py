"""Whether an input or a library is what the settings have pinned. Loads no settings: a verifier's process uses it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from components.config.shipped import install
from components.errors import InputError
from components.files import sha256_path
from components.opening import check_regular_or_folder

GYM = "reasoning-gym"
LIBRARIES = {"reasoning_gym": (GYM, "llm"), "verifiers": ("verifiers", "verifiers")}
"""Kinds of sources whose problems a library makes: its name, and the extra that installs it."""
MISSING = "correct the path in the configuration"


def check_version(expected: str | None, kind: str = "reasoning_gym") -> str:
    """The installed version of a library of `LIBRARIES`, compared with the expected one where there is one."""
    library, extra = LIBRARIES[kind]
    try:
        found = version(library)
    except PackageNotFoundError as error:
        raise InputError(f"{library} is not installed", where="data.source", how=install(extra)) from error
    if expected is not None and found != expected:
        raise InputError(
            f"{library} {found} is installed, and the configuration has version {expected}",
            where="data.source.version",
            how=f"pip install {library}=={expected}, or remove `version` to accept {found}",
        )
    return found


def check_digest(path: Path, expected: str | None, how: str = MISSING) -> str:
    """Digest of a file or folder, compared with the expected one where there is one. ``how`` to fix a missing one."""
    check_regular_or_folder(path, how=how)
    found = sha256_path(path)
    if expected is not None and found != expected:
        raise InputError(
            f"content has changed: expected sha256 {expected[:12]}, found {found[:12]}",
            where=path,
            how="restore the file, or remove its sha256 from the configuration to accept the new content",
        )
    return found
