"""Which system calls this process and its children can make, for good: seccomp filters that answer EPERM (Linux).

They need no privilege: the kernel only requires PR_SET_NO_NEW_PRIVS, by which a process gains none. There are two:
one refuses sockets and what reaches into other processes, the other allows nothing but a list of calls. A call by
another ABI of the same machine (32 bit, x32) is refused whatever it is.

A filter sees numbers and flags, not what a pointer points to: it cannot tell one path from another. That is what
`components.rewards.privileges` is for.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import pack
from types import MappingProxyType

# System calls by name: their numbers on x86_64 and aarch64, from the kernel's tables; None: it has no such call.
REFUSED_WITH_THE_NETWORK = MappingProxyType({
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "sendto": (44, 206), "sendmsg": (46, 211),
    "bind": (49, 200), "listen": (50, 201), "accept4": (288, 242), "sendmmsg": (307, 269),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "io_uring_setup": (425, 425), "pidfd_getfd": (438, 438),
})  # fmt: skip
"""For a verifier that is trusted with everything else. io_uring opens sockets without the calls that are looked at."""

ALLOWED_FOR_CODE: MappingProxyType[str, tuple[int | None, int | None]] = MappingProxyType({
    # Handles that are open already, and new pipes.
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "preadv": (295, 69),
    "pwrite64": (18, 68), "pwritev": (296, 70), "lseek": (8, 62), "close": (3, 57), "close_range": (436, 436),
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59),
    # What a file is called and how large it is; opening one is looked at, below.
    "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291),
    "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78), "getdents": (78, None), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49),
    "fchdir": (81, 50), "fstatfs": (138, 44),
    # Memory of its own.
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216), "madvise": (28, 233),
    "mincore": (27, 232), "brk": (12, 214),
    # Waiting.
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "pause": (34, None), "restart_syscall": (219, 128),
    "sched_yield": (24, 124), "futex": (202, 98),
    # Clocks, and alarms for itself.
    "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "getitimer": (36, 102), "setitimer": (38, 103), "alarm": (37, None),
    # Handlers of its own signals.
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "sigaltstack": (131, 132),
    # Who and where it is.
    "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getgroups": (115, 158), "getresuid": (118, 148),
    "getresgid": (120, 150), "getpgrp": (111, None), "getpgid": (121, 155), "getsid": (124, 156), "uname": (63, 160),
    "sysinfo": (99, 179), "getrlimit": (97, 163), "getrusage": (98, 165), "getcpu": (309, 168),
    "getpriority": (140, 141), "sched_getaffinity": (204, 123), "getrandom": (318, 278),
    # How a thread begins and the process ends.
    "arch_prctl": (158, None), "set_tid_address": (218, 96), "set_robust_list": (273, 99), "rseq": (334, 293),
    "exit": (60, 93), "exit_group": (231, 94),
})  # fmt: skip
"""All that code of a policy may call besides `CHECKED`: what ordinary Python and numpy need, none of which reaches
another process, outlives the call's own process, or changes a file. A call that is not listed is refused."""

CHECKED = MappingProxyType({
    "open": (2, None), "openat": (257, 56), "fcntl": (72, 25), "ioctl": (16, 29), "prlimit64": (302, 261),
})  # fmt: skip
"""Calls that are allowed with some arguments, which `CONDITIONS` says."""


PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Classic BPF: load a word of `struct seccomp_data`, compare it, return."""
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
"""Offsets in `struct seccomp_data`."""
X32 = 0x40000000
"""x86_64 calls of the x32 ABI have this bit."""
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of an architecture in the tables above, and its AUDIT_ARCH."""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
FCNTL = (0, 1, 2, 3, 1030)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC. Not F_SETOWN, F_SETSIG and F_SETFL with O_ASYNC, which send a
signal of one's choice to any process of this user; nor locks."""
IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS (isatty), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX. Not FIOSETOWN, SIOCSPGRP, FIOASYNC."""

Line = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Word:
    """A test of 32 bits of an argument: it is one of ``among``, where given, and has none of the bits ``without``."""

    argument: int
    among: Sequence[int] = ()
    without: int = 0
    upper: bool = False  # the high half, on little-endian machines

    def lines(self) -> Iterator[Line]:
        """Instructions that return REFUSE, or fall through."""
        yield LOAD, 0, 0, ARGUMENTS + 8 * self.argument + 4 * self.upper
        for left, value in zip(range(len(self.among), 0, -1), self.among, strict=True):
            yield EQUAL, left, 0, value
        if self.among:
            yield RETURN, 0, 0, REFUSE
        if self.without:
            yield ANY_BIT, 0, 1, self.without
            yield RETURN, 0, 0, REFUSE


CONDITIONS = {
    "open": (Word(1, without=WRITES),),
    "openat": (Word(2, without=WRITES),),
    "fcntl": (Word(1, FCNTL),),
    "ioctl": (Word(1, IOCTL),),
    "prlimit64": (Word(0, (0,)), Word(2, (0,)), Word(2, (0,), upper=True)),  # of itself, and no new limit
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def refuse_network() -> None:
    """Install the filter. Call it before any thread is started: it holds for this thread and what it starts.

    Raises:
        RuntimeError: this machine cannot do it.
    """
    _install(network_filter(this_machine()))


def install_compute_only_filter() -> None:
    """The filter for code that a policy wrote: compute, and read files; see `ALLOWED_FOR_CODE`.

    Raises:
        RuntimeError: this machine cannot do it.
    """
    _install(code_filter(this_machine()))


def this_machine() -> str:
    """The key of this architecture in `MACHINES`.

    Raises:
        RuntimeError: there is none.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in MACHINES:
        raise RuntimeError(
            f"no network fence on {sys.platform} {machine}: use Linux on x86_64 or aarch64, or say "
            "network: open in the sandbox settings to do without (verifiers that run code cannot)"
        )
    return machine


def _install(code: bytes) -> None:
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0)):
        if libc.prctl(*call):
            raise RuntimeError(
                f"the kernel refused the network fence ({os.strerror(ctypes.get_errno())}): allow seccomp filters, or "
                "say network: open in the sandbox settings to do without"
            )


def network_filter(machine: str) -> bytes:
    """The filter in classic BPF that refuses `REFUSED_WITH_THE_NETWORK` and allows the rest."""
    column, _ = MACHINES[machine]
    refused = [numbers[column] for numbers in REFUSED_WITH_THE_NETWORK.values()]
    return _packed([*_beginning(machine), *_answers(refused, REFUSE), (RETURN, 0, 0, ALLOW)])


def code_filter(machine: str) -> bytes:
    """The filter in classic BPF that allows `ALLOWED_FOR_CODE`, and `CHECKED` under `CONDITIONS`, and no more."""
    column, _ = MACHINES[machine]
    allowed = [number for numbers in ALLOWED_FOR_CODE.values() if (number := numbers[column]) is not None]
    lines = [*_beginning(machine), *_answers(allowed, ALLOW)]
    for name, numbers in CHECKED.items():
        if (number := numbers[column]) is not None:
            tests = [line for word in CONDITIONS[name] for line in word.lines()]
            lines += [(EQUAL, 0, len(tests) + 1, number), *tests, (RETURN, 0, 0, ALLOW)]
    return _packed([*lines, (RETURN, 0, 0, REFUSE)])


def _beginning(machine: str) -> list[Line]:
    """Refuse other ABIs and load the number of the call."""
    _, audit = MACHINES[machine]
    lines = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, audit), (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, NUMBER)]
    return [*lines, (AT_LEAST, 0, 1, X32), (RETURN, 0, 0, REFUSE)]


def _answers(calls: Sequence[int], answer: int) -> Iterator[Line]:
    """Every test jumps over exactly one instruction, so no distance depends on how many there are."""
    for call in calls:
        yield EQUAL, 0, 1, call
        yield RETURN, 0, 0, answer


def _packed(lines: Sequence[Line]) -> bytes:
    """8 bytes an instruction."""
    return b"".join(pack("HBBI", *line) for line in lines)
