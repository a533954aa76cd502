"""The ranks of one learner: processes that `torchrun` starts, connected by `torch.distributed`.

Rank 0 runs the loop and gives the commands (`components.learner.leader`); the others carry them out with it
(`components.learner.follower`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed.rendezvous import rendezvous

from components.code_digest import code_digest
from components.config.training import RankSettings
from components.device import own_device
from components.errors import InputError, RankLost
from components.learner.members import LOST, RESUME, Member, lost
from components.learner.ranks import Peers
from components.processes.environments import RANK_LOGS
from components.processes.ranked import is_ranked

IDLE = timedelta(days=30)
"""How long ranks 1 and up wait for the next command: rank 0 samples between two of them."""
LEAST = timedelta(seconds=60)
"""How long the store may take to answer at the end of a stage."""
LOOK = 1.0
"""Seconds between two checks whether a rank has received SIGTERM."""
OVER = "over"
"""What rank 0 leaves instead of coming: there was nothing to learn."""
HERE, STOPPING, ENDED, DONE = "evenkeel/here", "evenkeel/stopping", "evenkeel/ended", "evenkeel/done"


class Dismissed(Exception):
    """Rank 0 has ended the stage and needed no other rank."""


class Group:
    """This process and its peers. All ranks make one together; `send` and `receive`, and what is inside of
    `collective`, are calls that all of them make at the same time.

    Args:
        settings: how many ranks there are, and how long one may take.

    Raises:
        InputError: this process was not started as a rank, or the ranks are not as many, or run other code.
        RankLost: the ranks do not meet in time.
        Dismissed: of ranks 1 and up: rank 0 has ended the stage without them.
    """

    def __init__(self, settings: RankSettings, environment: Mapping[str, str] = os.environ) -> None:
        rank, size = place_of(environment, settings.processes)
        self._limit, self._left = settings.reply_timeout, threading.Event()
        self._commands = 0  # sent, or received
        device = device_of_rank()
        with meeting(settings.start_timeout):
            patience = timedelta(seconds=settings.start_timeout)
            self._store = store_of(environment, rank, size, patience)
            if rank:  # rank 0 loads the policy first, for as long as that takes
                self._store.wait([f"{HERE}/0"], IDLE)
                if self._store.get(f"{HERE}/0") == OVER.encode():
                    raise Dismissed
            self._store.set(f"{HERE}/{rank}", "")
            self._store.wait([f"{HERE}/{one}" for one in range(size)], patience)
            distributed.init_process_group(
                "nccl" if device.type == "cuda" else "gloo",
                store=self._store,
                rank=rank,
                world_size=size,
                timeout=timedelta(seconds=settings.reply_timeout),
            )
            limit = IDLE if rank else timedelta(seconds=settings.reply_timeout)
            self._control, writing = (distributed.new_group(backend="gloo", timeout=limit) for _ in range(2))
            self.ranks = Peers(rank, size, device, control=self._control, writing=writing)
            self._others = self._met(environment)

    def _met(self, environment: Mapping[str, str]) -> list[Member]:
        """The other members; refuses those that run something else."""
        rank, program = self.ranks.rank, f"torch {torch.__version__}, components {code_digest()[:12]}"
        members: list[Any] = [None] * self.ranks.size
        own = Member.this(rank, program, str(log_of(environment, rank) or ""))
        distributed.all_gather_object(members, own, group=self._control)
        for other in members:
            if other.program != members[0].program:
                raise InputError(
                    f"rank {other.rank} runs other code than rank 0: {other.program}, and {members[0].program}",
                    where="learner.ranks",
                    how="start all of them from the same code and environment",
                )
        return [member for member in members if member.rank != rank]

    # Commands

    def send(self, command: tuple[Any, ...]) -> None:
        """On rank 0: give a command to all others."""
        self._commands += 1
        distributed.broadcast_object_list([command], src=0, group=self._control)

    def receive(self) -> tuple[Any, ...]:
        """On the others: the next command, whenever it comes."""
        found: list[Any] = [None]
        distributed.broadcast_object_list(found, src=0, group=self._control)
        self._commands += 1
        command: tuple[Any, ...] = found[0]
        return command

    def report_done(self) -> None:
        """On the others: say that the command has been carried out."""
        self._store.set(f"{DONE}/{self.ranks.rank}", str(self._commands))

    @contextmanager
    def collective(self, command: str) -> Iterator[None]:
        """Around what all ranks do at the same time; states which rank was lost where one is.

        Raises:
            RankLost: one of them has ended, or takes longer than `RankSettings.reply_timeout`.
            InputError: one of them failed.
        """
        try:
            yield
        except RuntimeError as error:
            if not is_lost(error):
                raise
            behind = [one for one in self._others if self._read(f"{DONE}/{one.rank}") != str(self._commands)]
            raise lost(command, self._others, self._reason, behind, error, self._limit) from error

    # Ends

    def report_end(self, error: BaseException) -> None:
        """On ranks 1 and up: leave the reason why this rank ends, for rank 0 to report."""
        reason = LOST if is_lost(error) else f"{type(error).__name__}: {error}"
        with suppress(RuntimeError):
            self._store.set(f"{ENDED}/{self.ranks.rank}", reason)

    def _reason(self, member: Member) -> str:
        """Why a rank ended, by its own account; empty where it gave none."""
        return self._read(f"{ENDED}/{member.rank}")

    def _read(self, key: str) -> str:
        """What a rank has left in the store; empty where it has not, or where the store has gone."""
        with suppress(RuntimeError):
            return str(self._store.get(key).decode()) if self._store.check([key]) else ""
        return ""

    def on_stop_request(self, notify: Callable[[], None]) -> None:
        """On rank 0: have ``notify`` called by a thread once another rank has received SIGTERM."""

        def look() -> None:
            with suppress(RuntimeError):  # that the store has gone is found out by the next command
                while not self._left.wait(LOOK):
                    if self._store.check([STOPPING]):
                        notify()
                        return

        if self._others:
            threading.Thread(target=look, name="ranks-stopping", daemon=True).start()

    def report_sigterm(self) -> None:
        """On the others: notify rank 0 that this one is to stop; it needs this rank for its last checkpoint."""
        with suppress(RuntimeError):
            self._store.set(STOPPING, str(self.ranks.rank))

    def leave(self) -> None:
        """Close all connections; ranks that still wait for a command end."""
        if not self._left.is_set():
            self._left.set()
            distributed.destroy_process_group()


def dismiss(environment: Mapping[str, str] = os.environ) -> None:
    """On rank 0, once its stage has ended: let the other ranks end, where it has not met them."""
    store = store_of(environment, 0, int(environment["WORLD_SIZE"]), LEAST)
    if not store.check([f"{HERE}/0"]):
        store.set(f"{HERE}/0", OVER)


def on_sigterm(act: Callable[[], None]) -> None:
    """Have a thread call ``act`` when SIGTERM comes. It must be blocked in this thread and in all that it started."""

    def wait() -> None:
        signal.sigwait({signal.SIGTERM})
        act()

    threading.Thread(target=wait, name="sigterm", daemon=True).start()


def place_of(environment: Mapping[str, str], processes: int) -> tuple[int, int]:
    """This process's rank and the number of ranks.

    Raises:
        InputError: it was not started as a rank, or there is another number of them.
    """
    if not is_ranked(environment) and processes == 1:
        return 0, 1
    how = f"set launch.kind to processes, which starts them; or torchrun --nproc-per-node={processes} -m components ..."
    try:
        started = environment if is_ranked(environment) else {}
        rank, size = int(started["RANK"]), int(started["WORLD_SIZE"])
    except (KeyError, ValueError):
        what = f"the learner has {processes} ranks, and this process was not started as one of them"
        raise InputError(what, where="learner.ranks.processes", how=how) from None
    if size != processes:
        what = f"another number of ranks: {processes} in the settings, {size} were started"
        raise InputError(what, where="learner.ranks.processes", how=how)
    return rank, size


def store_of(environment: Mapping[str, str], rank: int, size: int, patience: timedelta) -> Any:
    """Where the ranks find each other: at MASTER_ADDR and MASTER_PORT; a rank that is alone needs no place."""
    if not is_ranked(environment):
        return distributed.HashStore()  # type: ignore[attr-defined]
    store, *_ = next(rendezvous("env://", rank, size, timeout=patience))
    return store


def device_of_rank() -> torch.device:
    """`own_device`. DeepSpeed reads both variables that are set here."""
    device = own_device()
    os.environ["DS_ACCELERATOR"] = device.type
    os.environ.setdefault("LOCAL_RANK", "0")
    return device


def log_of(environment: Mapping[str, str], rank: int) -> Path | None:
    """The file that a rank writes its log to; None: its standard output."""
    folder = environment.get(RANK_LOGS, "")
    return Path(folder).absolute() / f"learner-{rank}.log" if folder and rank else None


@contextmanager
def meeting(seconds: float) -> Iterator[None]:
    """Around what waits until all ranks are there.

    Raises:
        RankLost: not all of them come.
    """
    try:
        yield
    except RuntimeError as error:
        what = f"the ranks did not meet within {seconds:g} s: {str(error).splitlines()[0]}"
        how = f"read their logs, or raise learner.ranks.start_timeout; {RESUME}"
        raise RankLost(what, where="learner.ranks", how=how) from error


def is_lost(error: BaseException) -> bool:
    """Whether an error says that a peer has gone or does not answer; gloo has no class of its own for that."""
    if not isinstance(error, RuntimeError):
        return False
    text = str(error).lower()
    gloo = ("closed by peer", "reset by peer", "timed out waiting", "broken pipe")
    return isinstance(error, distributed.DistError) or any(part in text for part in gloo)
