"""No network for this process and its children, for good: a seccomp filter that answers EPERM (Linux).

Needs no privilege: the kernel asks only that the process gives up gaining any (PR_SET_NO_NEW_PRIVS). Besides sockets it
refuses io_uring, which can open sockets without the calls that are looked at, and the calls that reach into other
processes. A call by another ABI of the same machine (32 bit, x32) is refused whatever it is.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from dataclasses import dataclass
from struct import pack

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
"""Classic BPF: load a word of `struct seccomp_data`, compare it, return."""
NUMBER, ARCHITECTURE = 0, 4
"""Offsets in `struct seccomp_data`."""
X32 = 0x40000000
"""x86_64 calls of the x32 ABI have this bit."""


@dataclass(frozen=True, slots=True)
class Machine:
    """AUDIT_ARCH of an architecture and its numbers of the refused calls, from the kernel's tables."""

    audit: int
    calls: tuple[int, ...]


MACHINES = {
    # socket, connect, accept, sendto, sendmsg, bind, listen, accept4, sendmmsg;
    # ptrace, process_vm_readv, process_vm_writev, io_uring_setup, pidfd_getfd
    "x86_64": Machine(0xC000003E, (41, 42, 43, 44, 46, 49, 50, 288, 307, 101, 310, 311, 425, 438)),
    "aarch64": Machine(0xC00000B7, (198, 203, 202, 206, 211, 200, 201, 242, 269, 117, 270, 271, 425, 438)),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def refuse_network() -> None:
    """Install the filter. Call it before any thread is started: it holds for this thread and what it starts.

    Raises:
        RuntimeError: this machine cannot do it.
    """
    machine = MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        raise RuntimeError(
            f"no network fence on {sys.platform} {platform.machine()}: use Linux on x86_64 or aarch64, or say "
            "network: open in the sandbox settings to do without"
        )
    code = program(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0),
    ):
        if libc.prctl(*call):
            raise RuntimeError(
                f"the kernel refused the network fence ({os.strerror(ctypes.get_errno())}): allow seccomp filters, or "
                "say network: open in the sandbox settings to do without"
            )


def program(machine: Machine) -> bytes:
    """The filter in classic BPF, 8 bytes an instruction."""
    tests = [(EQUAL, call) for call in machine.calls]
    if machine.audit == MACHINES["x86_64"].audit:
        tests.insert(0, (AT_LEAST, X32))
    lines = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 0, len(tests) + 2, machine.audit),  # another ABI: on to the last line
        (LOAD, 0, 0, NUMBER),
        *((test, len(tests) - i, 0, value) for i, (test, value) in enumerate(tests)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    return b"".join(pack("HBBI", *line) for line in lines)
