"""The ranks that a run starts on this machine."""

from __future__ import annotations

import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from components.learner.remote.protocol import KEY, LISTEN, LOST_PEER, RENDEZVOUS
from components.processes import Child
from components.processes.owner import claim

SETTLE = 2.0
"""Seconds in which ranks end of themselves: told to, or because they lost a peer."""


class LocalRanks:
    """Ranks under guardians, each with a log of its own. They meet in a folder that only this user may enter."""

    def __init__(self, count: int, threads: int, logs: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="evenkeel-")
        claim(Path(self._folder.name))
        self.address, self.key = f"{self._folder.name}/socket", secrets.token_hex(16)
        shared = {
            "WORLD_SIZE": str(count),
            RENDEZVOUS: f"{self._folder.name}/meeting",
            LISTEN: self.address,
            "OMP_NUM_THREADS": str(threads),
            "HF_HUB_OFFLINE": "1",
            "PYTHONWARNINGS": "ignore::FutureWarning",  # about names inside of torch and DeepSpeed
            **({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}),
        }
        self.children: list[Child] = []
        try:
            for rank in range(count):
                env = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), **({KEY: self.key} if rank == 0 else {})}
                command = [sys.executable, "-m", "components.learner.worker"]
                log = logs / f"learner-{rank}.log"
                self.children.append(Child(f"learner-{rank}", command, log=log, env=env, grace=SETTLE))
        except BaseException:
            self.end()
            raise

    @property
    def all_alive(self) -> bool:
        return all(child.alive for child in self.children)

    def first_to_end(self) -> Child | None:
        """The rank whose end took the others with it; None where all of them live."""
        self.settle()
        return min((child for child in self.children if not child.alive), key=_blame, default=None)

    def settle(self) -> None:
        """Wait a little for ranks that are about to end."""
        until = time.monotonic() + SETTLE
        while any(child.alive for child in self.children) and time.monotonic() < until:
            time.sleep(0.02)

    def stopped(self) -> list[str]:
        """Names of the ranks that somebody has stopped (SIGSTOP)."""
        return [child.name for child in self.children if psutil.STATUS_STOPPED in _states(child)]

    def end(self) -> None:
        """End all of them, with all that they started."""
        for child in self.children:
            child.stop()
        self._folder.cleanup()


def _blame(child: Child) -> int:
    """0 for one that was killed, 1 for one that failed or left, 2 for one that only lost another."""
    code = child.exit_code or 0
    return 0 if code > 128 else 2 if code == LOST_PEER else 1


def _states(child: Child) -> Iterator[str]:
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(child.pid).children():
            yield process.status()
