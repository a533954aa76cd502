"""One rank of a learner: ``python -m components.learner.worker``, started by a run or by torchrun.

RANK, WORLD_SIZE and LOCAL_RANK say who it is; the ranks meet at MASTER_ADDR and MASTER_PORT, or in the file
EVENKEEL_RENDEZVOUS. Rank 0 listens at EVENKEEL_LEARNER_LISTEN (host:port, or the path of a Unix socket) for the one run
that knows EVENKEEL_LEARNER_KEY, and passes what it says on to all ranks, which carry it out together. A second
connection, made once the run has started them, tells of files that were written meanwhile. What fails on one rank ends
all of them: the run has its checkpoints. The key is never sent, and nothing is encrypted: only the run should reach
that port.

A rank that is asked to end (SIGTERM) goes on: the run needs all of them for its last checkpoint. The next reply tells
the run, and the ranks end when it hangs up. Before a run has spoken there is nothing to lose, and it ends at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection

import torch
from torch import distributed

from components.errors import EvenkeelError, InputError, PeerLost
from components.learner.remote.entrance import Entrance
from components.learner.remote.place import place_of
from components.learner.remote.protocol import BROKE, CLOSE, LOST_PEER, REFUSED
from components.learner.remote.session import Session
from components.learner.remote.wire import decode, described, encode

IDLE = timedelta(days=30)
"""Between two commands a run samples and scores, for as long as it takes."""


def main() -> int:
    """Serve one run until it hangs up; returns the exit code."""
    try:
        place = place_of(os.environ)
    except InputError as error:
        return refused(error)
    rank, size = place.rank, place.size
    device = torch.device("cpu")
    os.environ["DS_ACCELERATOR"] = "cuda" if torch.cuda.is_available() else "cpu"
    if torch.cuda.is_available():
        device = torch.device("cuda", place.local)
        torch.cuda.set_device(device)
    backend = "gloo" if device.type == "cpu" else "nccl"
    distributed.init_process_group(backend, init_method=place.meeting, rank=rank, world_size=size)
    control = distributed.new_group(backend="gloo", timeout=IDLE)
    say = partial(print, f"rank {rank} of {size}, {device}, {backend}:", flush=True)
    try:
        entrance = Entrance(place.address, place.key) if rank == 0 else None
    except InputError as error:
        return refused(error)
    say("waits for the run")
    run = None if entrance is None else entrance.accept()
    session = Session(rank, size, device, entrance)
    try:
        serve(session, run, control)
    except Exception as error:
        traceback.print_exc()
        if run is not None:
            with suppress(OSError):
                run.send_bytes(encode({"error": described(error)}))
        return exit_code(error)
    finally:
        session.close()
    say("the run has hung up")
    return 0


def refused(error: InputError) -> int:
    """Say what is wrong with how this rank was started; returns the exit code."""
    print(error, file=sys.stderr)
    return REFUSED


def serve(session: Session, run: Connection | None, control: distributed.ProcessGroup) -> None:
    """Carry out every command on all ranks; rank 0 answers. Returns when the run has hung up."""
    asked, message = threading.Event(), decode(on_every_rank(received(run), control))
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    while True:
        session.stopping = any_rank(asked.is_set(), control)
        if message.header["command"] == CLOSE:
            return
        for reply in session.carry_out(message):
            if run is not None:
                run.send_bytes(reply)
        message = decode(on_every_rank(received(run), control))


def received(run: Connection | None) -> bytes:
    """The next message on rank 0; nothing on the others."""
    if run is None:
        return b""
    try:
        return run.recv_bytes()
    except (EOFError, OSError):  # between two messages, or in the middle of one
        return encode({"command": CLOSE})


def on_every_rank(data: bytes, control: distributed.ProcessGroup) -> bytes:
    """Rank 0's bytes."""
    length = torch.tensor([len(data)])
    distributed.broadcast(length, src=0, group=control)
    buffer = torch.frombuffer(bytearray(data or bytes(int(length))), dtype=torch.uint8)
    distributed.broadcast(buffer, src=0, group=control)
    return buffer.numpy().tobytes()


def any_rank(flag: bool, control: distributed.ProcessGroup) -> bool:
    """Whether it is so on some rank."""
    flags = torch.tensor([int(flag)])
    distributed.all_reduce(flags, distributed.ReduceOp.MAX, group=control)
    return bool(flags.item())


def exit_code(error: Exception) -> int:
    """What kind of end it is."""
    if isinstance(error, EvenkeelError):
        return LOST_PEER if isinstance(error, PeerLost) else REFUSED
    lost = isinstance(error, distributed.DistError) or "closed by peer" in str(error) or "reset by peer" in str(error)
    return LOST_PEER if lost else BROKE


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the ordinary way out waits for peers that may be gone
