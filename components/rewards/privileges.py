"""What a process gives up for good (Linux): so that others cannot look into it, so that it has no power over them, and
what it may read.

The last is by Landlock (Linux 5.13; https://docs.kernel.org/userspace-api/landlock.html), which needs no privilege. It
covers opening files and listing folders, not asking for a file's size and times.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from struct import pack

PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 4, 24, 47, 4
PR_SET_NO_NEW_PRIVS = 38
CAPABILITY_VERSION = 0x20080522
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""The same numbers on every architecture."""
VERSION, PATH_BENEATH = 1, 1
READ_FILE, READ_DIR = 1 << 2, 1 << 3
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Version of Landlock -> how many rights to files it knows; all are taken away."""
NETWORK_RIGHTS, SCOPES = 0b11, 0b11
"""Of version 4: bind and connect TCP. Of version 6: signals to processes outside, and their abstract sockets."""


def hide() -> None:
    """No process of the same user can trace this one or open its memory and handles in /proc; it dumps no core.

    Does nothing on another system than Linux. A process with CAP_SYS_PTRACE still can.
    """
    if sys.platform == "linux" and _libc().prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl: {os.strerror(ctypes.get_errno())}")


def drop_capabilities() -> None:
    """Root becomes a user like any other, whatever it runs later; somebody else has none to drop.

    Raises:
        OSError: the kernel refused.
    """
    libc = _libc()
    for capability in itertools.count():  # ends at one that the kernel does not know, or that is not ours to drop
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if libc.capset(pack("Ii", CAPABILITY_VERSION, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")


def landlock_version() -> int:
    """The kernel's version of Landlock; 0 where it has none or it is switched off."""
    found: int = _libc().syscall(CREATE_RULESET, None, 0, VERSION)
    return max(0, found)


def installation() -> list[Path]:
    """Where Python, its packages and the libraries that they link to lie, and what the C library reads."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    python = [*(sysconfig.get_path(name) for name in names), f"{sys.base_prefix}/lib"]
    system = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo")
    single = ("/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
    return [path for name in dict.fromkeys((*python, *system, *single)) if (path := Path(name)).exists()]


def read_only_beneath(handles: Iterable[int]) -> bool:
    """From now on, this thread and what it starts can open only what lies beneath these open folders, for reading.

    Returns:
        False, and nothing is changed, where the kernel has no Landlock.

    Raises:
        OSError: the kernel has it and refuses.
    """
    if not (known := landlock_version()):
        return False
    files = (1 << max(bits for since, bits in FILE_RIGHTS.items() if since <= known)) - 1
    attributes = pack("Q", files)
    attributes += pack("Q", NETWORK_RIGHTS) if known >= 4 else b""
    attributes += pack("Q", SCOPES) if known >= 6 else b""
    ruleset = _call(CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for handle in handles:
            rights = READ_FILE | READ_DIR if os.path.isdir(handle) else READ_FILE
            _call(ADD_RULE, ruleset, PATH_BENEATH, pack("=Qi", rights, handle), 0)
        if _libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
        _call(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return True


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: int | bytes) -> int:
    found: int = _libc().syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if found < 0:
        problem = ctypes.get_errno() or errno.EPERM
        raise OSError(problem, f"Landlock: {os.strerror(problem)}")
    return found
