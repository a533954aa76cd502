"""What torchrun leaves in the environment of a rank, and who must not inherit it. Loads no library."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping

STARTED = "TORCHELASTIC_RUN_ID"
"""Set by torchrun alone; others set RANK and WORLD_SIZE as well."""
OWN = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    *("GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE"),
)
PR_SET_PDEATHSIG = 1


def is_ranked(environment: Mapping[str, str]) -> bool:
    """Whether torchrun has started this process."""
    return STARTED in environment


def without_rank(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that is no rank, such as a server, which would take these variables for its own."""
    if not is_ranked(environment):
        return dict(environment)
    return {
        name: value for name, value in environment.items() if name not in OWN and not name.startswith("TORCHELASTIC_")
    }


def die_with_parent() -> None:
    """Let the kernel end this process when the one that started it is gone, whatever that died of (Linux): a rank with
    torchrun, a flow run with its worker."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
