"""The limits of a worker process, set from inside before it looks at anything that a policy wrote.

The reason of what is unscorable begins with one of `CODES`.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from components.config.sandbox import SandboxSettings
from components.rewards.privileges import hide
from components.rewards.seccomp import refuse_network

CODES = {
    "timeout": "no verdict within the wall time of one item; the worker was replaced",
    "cpu": "no verdict within the processor time of one item; the worker was replaced",
    "memory": "more address space was needed than a fresh worker has",
    "crash": "the worker ended or broke its protocol, also on a second try in a fresh one; it was replaced",
    "error": "the verifier raised, or returned a figure that cannot be one",
    "refused": "the verifier will not judge this item, say because its reference cannot be read",
}
FILE_BYTES = 1 << 20
"""Verifiers write no files; this is for what a library may leave behind."""


def close_network(limits: SandboxSettings) -> None:
    """First, so that a verifier has no network while it loads its model. No other process may inspect this one."""
    hide()
    if limits.network == "refused":
        refuse_network()


def close(limits: SandboxSettings) -> None:
    """Cap address space and files for good; no core files. The verifier has loaded what it needs."""
    size = limits.memory_mb * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def item(limits: SandboxSettings) -> Iterator[None]:
    """The clocks of one item. Both end the whole process, whichever thread used the time up and whatever it is doing.

    ITIMER_PROF counts the processor time of all threads, and its signal is not handled: a computation inside a C
    function, which would not return to look at a handler, ends too. The wall clock is a second fence: if the parent
    was killed, nothing else ends a verifier that sleeps.
    """
    signal.setitimer(signal.ITIMER_REAL, 2 * limits.timeout)
    signal.setitimer(signal.ITIMER_PROF, limits.cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
