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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import pack
from types import MappingProxyType

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Classic BPF: load a word of `struct seccomp_data`, compare it, return."""
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
"""Offsets in `struct seccomp_data`."""
X32 = 0x40000000
"""x86_64 calls of the x32 ABI have this bit."""


@dataclass(frozen=True, slots=True)
class Machine:
    """AUDIT_ARCH of an architecture and its numbers of system calls, from the kernel's tables.

    ``open`` maps the calls that open a file to the place of their flags among the arguments.
    """

    audit: int
    network: tuple[int, ...]
    untrusted: tuple[int, ...]
    open: Mapping[int, int]


# Network: socket, connect, accept, sendto, sendmsg, bind, listen, accept4, sendmmsg; and ptrace, process_vm_readv,
# process_vm_writev, io_uring_setup, pidfd_getfd.
# Untrusted, a line each: clone, fork, vfork, execve, execveat, clone3; kill, tkill, tgkill, rt_sigqueueinfo,
# pidfd_send_signal; setpgid, setsid, setrlimit, prlimit64; creat, openat2, truncate, ftruncate, mknod, mknodat;
# rename, renameat, renameat2, mkdir, mkdirat, rmdir; link, linkat, unlink, unlinkat, symlink, symlinkat; chmod, fchmod,
# fchmodat, fchmodat2, chown, fchown, lchown, fchownat, utimensat; mount, umount2, unshare, setns, chroot, bpf, reboot,
# init_module, finit_module, delete_module. The newer architecture has no call without its "at".
MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        (41, 42, 43, 44, 46, 49, 50, 288, 307, 101, 310, 311, 425, 438),
        (
            *(56, 57, 58, 59, 322, 435),
            *(62, 200, 234, 129, 424),
            *(109, 112, 160, 302),
            *(85, 437, 76, 77, 133, 259),
            *(82, 264, 316, 83, 258, 84),
            *(86, 265, 87, 263, 88, 266),
            *(90, 91, 268, 452, 92, 93, 94, 260, 280),
            *(165, 166, 272, 308, 161, 321, 169, 175, 313, 176),
        ),
        {2: 1, 257: 2},
    ),
    "aarch64": Machine(
        0xC00000B7,
        (198, 203, 202, 206, 211, 200, 201, 242, 269, 117, 270, 271, 425, 438),
        (
            *(220, 221, 281, 435),
            *(129, 130, 131, 138, 424),
            *(154, 157, 164, 261),
            *(437, 45, 46, 33),
            *(38, 276, 34),
            *(37, 35, 36),
            *(52, 53, 452, 54, 55, 88),
            *(40, 39, 97, 268, 51, 280, 142, 105, 273, 106),
        ),
        {56: 2},
    ),
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def refuse_network() -> None:
    """Install the filter. Call it before any thread is started: it holds for this thread and what it starts.

    Raises:
        RuntimeError: this machine cannot do it.
    """
    machine = this_machine()
    _install(program(machine.audit, machine.network))


def refuse_all_but_thinking() -> None:
    """The filter for code that a policy wrote: also no processes, threads or signals, and no file opened for writing,
    made, moved or removed. It can read what this user can read.

    Raises:
        RuntimeError: this machine cannot do it.
    """
    machine = this_machine()
    _install(program(machine.audit, machine.network + machine.untrusted, machine.open))


def this_machine() -> Machine:
    """The tables of this architecture.

    Raises:
        RuntimeError: there are none.
    """
    machine = MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        raise RuntimeError(
            f"no network fence on {sys.platform} {platform.machine()}: use Linux on x86_64 or aarch64, or say "
            "network: open in the sandbox settings to do without (verifiers that run code cannot)"
        )
    return machine


def _install(code: bytes) -> None:
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


def program(audit: int, calls: Sequence[int], opens: Mapping[int, int] = MappingProxyType({})) -> bytes:
    """The filter in classic BPF, 8 bytes an instruction: refuses ``calls``, and ``opens`` with a flag of `WRITES`.

    Every test jumps over exactly one instruction, so no distance depends on how many there are.
    """
    lines = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, audit), (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, NUMBER)]
    if audit == MACHINES["x86_64"].audit:
        lines += [(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, REFUSE)]
    for call in calls:
        lines += [(EQUAL, 0, 1, call), (RETURN, 0, 0, REFUSE)]
    for call, place in opens.items():
        lines += [
            (EQUAL, 0, 4, call),
            (LOAD, 0, 0, ARGUMENTS + 8 * place),  # the low half, on little-endian machines
            (ANY_BIT, 0, 1, WRITES),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        ]
    return b"".join(pack("HBBI", *line) for line in [*lines, (RETURN, 0, 0, ALLOW)])
