"""The ranks of one machine under torchrun: ``python -m components.processes.torchrun NODES PROCESSES HOST:PORT NODE
MODULE ARGUMENT...``.

The machines meet at node 0. No rank is started again here: what fails on one ends all, and the job is started again.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
from torch.distributed import DistError
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_STOPPED
from components.processes.environments import ATTEMPT, RUN

PATIENCE = 900
"""Seconds within which all nodes must meet: one may have to wait for a machine, and for its image."""
END_WITHIN = 10
"""Seconds that the ranks of this machine have when another machine has failed; torch gives them 30 where one of their
own did. In that time rank 0 reports which was lost."""


def main(arguments: Sequence[str]) -> int:
    """Run until the ranks have ended; returns an exit code of `components.errors`."""
    nodes, processes, node = int(arguments[0]), int(arguments[1]), int(arguments[3])
    os.environ["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = str(END_WITHIN)
    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=processes,
        run_id=f"{os.environ.get(RUN, 'evenkeel')}-{os.environ.get(ATTEMPT, '0')}",
        rdzv_backend="static",
        rdzv_endpoint=arguments[2],
        rdzv_configs={"rank": node, "timeout": PATIENCE},
        max_restarts=0,
        signals_to_handle="SIGHUP",  # not SIGTERM: torchrun would kill ranks that still write a checkpoint
    )
    signal.signal(signal.SIGTERM, lambda number, _: forward(number))
    with ThreadPoolExecutor(1) as pool:  # torch waits in C++, where Python handles no signal; this thread does not
        return pool.submit(launched, config, arguments[2], arguments[4:]).result()


def launched(config: LaunchConfig, meeting: str, module: Sequence[str]) -> int:
    """Start the ranks and wait for their end; returns the exit code."""
    try:
        elastic_launch(config, sys.executable)("-u", "-m", *module)
    except ChildFailedError as failed:
        print(failed, file=sys.stderr)
        return node_exit_code(failure.exitcode for failure in failed.failures.values())
    except DistError as error:
        print(f"the nodes did not meet at {meeting}: {error}", file=sys.stderr)
        return EXIT_LOST
    return 0


def forward(number: int) -> None:
    """Pass a signal on to the ranks, which know what to do; where there are none yet, nothing is lost."""
    ranks = psutil.Process().children()
    for rank in ranks:
        with suppress(psutil.NoSuchProcess):
            rank.send_signal(number)
    if not ranks:
        os._exit(EXIT_STOPPED)  # the other thread cannot be interrupted


def node_exit_code(codes: Iterable[int]) -> int:
    """The exit code of a node whose ranks ended with these; 128 plus a signal's number where one was killed. Ranks that
    have only lost another are blamed last."""
    found = set(codes)
    if EXIT_BAD_INPUT in found:
        return EXIT_BAD_INPUT
    if any(code > 0 for code in found - {EXIT_LOST, EXIT_STOPPED}):
        return 1  # whatever the others ended with: torch ends them, with SIGTERM and SIGKILL
    if killed := [code for code in found if code < 0 and code != -signal.SIGTERM]:
        return 128 - min(killed)
    return EXIT_STOPPED if found - {EXIT_LOST} else EXIT_LOST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
