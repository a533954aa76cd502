"""The ranks of one node under torchrun: ``python -m components.pods.ranks NODES PROCESSES HOST:PORT NODE``.

Nodes meet at node 0. None is started again here: what fails on one ends all, and the whole learner is started anew.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Sequence

from torch.distributed import DistError
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_STOPPED
from components.learner.remote.protocol import LOST_PEER, REFUSED
from components.pods.place import ATTEMPT, RUN

PATIENCE = 900
"""Seconds within which all nodes must meet: one may have to wait for a machine, and for its image."""
END_WITHIN = 10
"""Seconds that ranks have that have lost one of theirs: rank 0 still tells the run."""
WORKER = ("-u", "-m", "components.learner.worker")


def main(arguments: Sequence[str]) -> int:
    """Run until the ranks have ended; returns the exit code as `components.pods.learner` says."""
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
        signals_to_handle="SIGHUP",  # not SIGTERM: ranks that are asked to stop are not to be killed
    )
    try:
        elastic_launch(config, sys.executable)(*WORKER)
    except ChildFailedError as failed:
        print(failed, file=sys.stderr)
        return blame(failure.exitcode for failure in failed.failures.values())
    except DistError as error:
        print(f"the nodes did not meet at {arguments[2]}: {error}", file=sys.stderr)
        return EXIT_LOST
    return 0


def blame(codes: Iterable[int]) -> int:
    """The exit code of a node whose ranks ended with these: that of the one to blame, and it is to blame last that has
    only lost another."""
    found = set(codes)
    if REFUSED in found:
        return EXIT_BAD_INPUT
    found.discard(LOST_PEER)
    if not found:
        return EXIT_LOST
    return EXIT_STOPPED if found == {-signal.SIGTERM} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
