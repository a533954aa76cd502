"""System calls by name: their numbers on x86_64 and aarch64, from the kernel's tables; None: it has no such call."""

from __future__ import annotations

from types import MappingProxyType

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
"""Calls that are allowed with some arguments; `components.rewards.seccomp` says which."""
