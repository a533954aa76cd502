"""What a process gives up so that others cannot look into it, and so that it has no power over them (Linux)."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
from struct import pack

PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 4, 24, 47, 4
CAPABILITY_VERSION = 0x20080522


def hide() -> None:
    """No process of the same user can trace this one or open its memory and handles in /proc; it dumps no core.

    Does nothing on another system than Linux. A process with CAP_SYS_PTRACE still can.
    """
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl: {os.strerror(ctypes.get_errno())}")


def drop_capabilities() -> None:
    """Root becomes a user like any other, whatever it runs later; somebody else has none to drop.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in itertools.count():  # ends at one that the kernel does not know, or that is not ours to drop
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if libc.capset(pack("Ii", CAPABILITY_VERSION, 0), bytes(24)):
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")
