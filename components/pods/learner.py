"""The container ``learner``: ``python -m components.pods.learner --nodes N --processes M --rendezvous HOST:PORT``.

Starts the M ranks of this node (its number is JOB_COMPLETION_INDEX), see `components.processes.torchrun`. When it is
stopped (SIGTERM), the ranks receive the signal, and go on until the run has its checkpoint and hangs up.

Exit codes: 0 the run has hung up; 2 the ranks were refused; 75 another node or the run has gone; 143 asked to stop; 1
anything else, whose reason is in the log.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_STOPPED, EvenkeelError
from components.pods import place
from components.pods.child import FirstProcess
from components.pods.ending import leave, status_of
from components.processes.stopping import STOPPING, Asked
from components.status import StageStatus

TERMINATED = 128 + signal.SIGTERM
SAID = {
    0: "",
    EXIT_BAD_INPUT: "a rank was refused; the log says why",
    EXIT_LOST: "another node, or the run, has gone; its own log says why",
    EXIT_STOPPED: "asked to stop, and the run has hung up",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one run; returns the exit code of the container."""
    options = _parser().parse_args(arguments)
    try:
        with STOPPING.on_signal():
            place.check(os.environ)
            node = place.number(os.environ, place.NODE, otherwise=0 if options.nodes == 1 else None)
            with STOPPING.unheard():  # the ranks hear it
                status = run(options.nodes, options.processes, options.rendezvous, node)
    except EvenkeelError as error:
        status = status_of(error)
    except Asked:
        status = StageStatus(EXIT_STOPPED, "asked to stop before the ranks began")
    if status.exit_code:
        print(f"learner: {status.message}", file=sys.stderr, flush=True)
    return leave(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m components.pods.learner", description="Run a node's ranks.")
    parser.add_argument("--nodes", type=int, required=True, help="nodes of the learner")
    parser.add_argument("--processes", type=int, required=True, help="ranks of each node")
    parser.add_argument("--rendezvous", required=True, metavar="HOST:PORT", help="of node 0")
    return parser


def run(nodes: int, processes: int, rendezvous: str, node: int) -> StageStatus:
    """Run the ranks below torchrun; how they ended."""
    first = FirstProcess()
    torchrun = [sys.executable, "-m", "components.processes.torchrun"]
    code = first.run([*torchrun, *map(str, (nodes, processes, rendezvous, node)), "components.learner.worker"])
    if code == TERMINATED or (signal.SIGTERM in first.asked and code in (0, EXIT_LOST)):
        code = EXIT_STOPPED
    return StageStatus(
        code, SAID.get(code, f"node {node} failed with exit code {code}; the log says which rank and why")
    )


if __name__ == "__main__":
    sys.exit(main())
