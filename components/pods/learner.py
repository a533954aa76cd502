"""The container ``learner``: ``python -m components.pods.learner STAGE --config FILE``, in the run's workspace.

Runs one stage. Where its learner has several ranks, every node starts its own with torchrun (``--nodes``,
``--processes``, ``--rendezvous``; JOB_COMPLETION_INDEX is the number of this node); rank 0, on node 0, runs the stage,
and the others follow it. ``--state s3://bucket/prefix/<run>`` names where node 0 keeps checkpoints and output
(`components.pods.depot`) when the pods share no folder.

SIGTERM is passed on to the ranks, which go on until rank 0 has its checkpoint.

Exit codes of node 0 are those of the stage (`components.errors`). Of the other nodes: 0 rank 0 has ended the run; 2 a
rank was refused; 75 another node has gone; 143 stopped on request; anything else a rank failed, and its log states why.
75 waits a while, so that whatever this node has lost is on record first.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from components.code_digest import code_digest
from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_STOPPED, EvenkeelError, InputError
from components.layout import Layout
from components.pods.child import FirstProcess
from components.pods.ending import leave, status_of
from components.processes.stopping import STOPPING, StopRequested
from components.status import StageStatus, clear_status, read_status

CODE, CONSTRAINTS, IMAGE = "EVENKEEL_CODE", "EVENKEEL_CONSTRAINTS", "EVENKEEL_IMAGE_CONSTRAINTS"
NODE = "JOB_COMPLETION_INDEX"
SIGNALLED = 128
"""Exit codes above it are 128 plus the number of a signal."""
MEANINGS = {
    0: "",
    EXIT_BAD_INPUT: "a rank was refused; the log says why",
    EXIT_LOST: "another node has gone; its own log says why",
    EXIT_STOPPED: "stopped on request, and rank 0 has ended the run",
}
"""Exit codes of a node without rank 0."""


@dataclass(frozen=True, slots=True)
class Node:
    """One of the ``nodes`` machines of a stage, with ``processes`` ranks; ``rendezvous`` is HOST:PORT of node 0."""

    number: int
    nodes: int
    processes: int
    rendezvous: str

    def command(self, stage: str, config: Path) -> list[str]:
        """What this node runs: the stage, or torchrun with its ranks."""
        program = ["components", stage, "--config", str(config)]
        if self.nodes * self.processes == 1:
            return [sys.executable, "-m", *program]
        shape = map(str, (self.nodes, self.processes, self.rendezvous, self.number))
        return [sys.executable, "-m", "components.processes.torchrun", *shape, *program]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run this node's part of the stage; returns the exit code of the container."""
    options = _parser().parse_args(arguments)
    try:
        with STOPPING.on_signal():
            check_submission(os.environ)
            number = node_number(os.environ, options.nodes)
            node = Node(number, options.nodes, options.processes, options.rendezvous)
            status = run(node, options.stage, options.config, options.state)
    except EvenkeelError as error:
        status = status_of(error)
    except StopRequested:
        status = StageStatus(EXIT_STOPPED, "stopped on request before the stage began")
    if status.exit_code:
        print(f"learner: {status.message}", file=sys.stderr, flush=True)
    return leave(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m components.pods.learner", description="Run one stage in pods.")
    parser.add_argument("stage", help="as of `python -m components`")
    parser.add_argument("--config", type=Path, required=True, help="YAML file of the settings")
    parser.add_argument("--state", metavar="S3-URI", help="the run's files, s3://bucket/prefix/run")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of the learner")
    parser.add_argument("--processes", type=int, default=1, help="ranks of each node")
    parser.add_argument(
        "--rendezvous", default="", metavar="HOST:PORT", help="of node 0, where there are several ranks"
    )
    return parser


def check_submission(environment: Mapping[str, str]) -> None:
    """Refuse to run other code than that of whoever submitted the run, or with other packages than its own.

    Raises:
        InputError: `EVENKEEL_CODE` is not the digest of the code that runs here, or the image was built with another
            constraints.txt than `EVENKEEL_CONSTRAINTS`. What is not set, or what the image does not declare, is not
            compared.
    """
    expected, found = environment.get(CODE), code_digest()
    if expected and expected != found:
        raise InputError(
            f"this is other code than that of the run: {expected[:12]} in the run, {found[:12]} here",
            where=CODE,
            how="start the pod in the run's own workspace, with its components/ as they were, or submit the run again",
        )
    constraints, image = environment.get(CONSTRAINTS), environment.get(IMAGE)
    if constraints and image and constraints != image:
        raise InputError(
            f"the image has other packages than the run: constraints.txt is {constraints[:12]} in the run, and was "
            f"{image[:12]} for the image",
            where=IMAGE,
            how="rebuild the image from the run's constraints.txt, and name it in launch.kubernetes",
        )


def node_number(environment: Mapping[str, str], nodes: int) -> int:
    """Which of the ``nodes`` this one is; where it is the only one, the environment need not say it.

    Raises:
        InputError: it does not, or not as a number.
    """
    text = environment.get(NODE, "") or ("0" if nodes == 1 else "")
    if not (text.isascii() and text.isdigit()):
        what = f"{NODE} is {text!r}, which is no number" if text else f"{NODE} is not set"
        raise InputError(what, where=NODE, how=f"let the pod's template set {NODE}")
    return int(text)


def run(node: Node, stage: str, config: Path, uri: str | None) -> StageStatus:
    """Run the stage, with its state kept where ``uri`` says; how it ended."""
    if node.number > 0:
        return follow(node, stage, config)
    if uri is None:
        return lead(node, stage, config)
    from components.pods.depot import Depot  # loads boto3
    from components.pods.keeper import Keeper

    keeper = Keeper(Depot.of(uri), Layout(), stage)
    with STOPPING.defer_signal():  # the child receives the signal, and what it leaves is kept
        with keeper:
            status = lead(node, stage, config)
        return keeper.finish(status)


def lead(node: Node, stage: str, config: Path) -> StageStatus:
    """Run node 0 in a child; how the stage ended."""
    layout = Layout()
    clear_status(layout, stage)
    with STOPPING.defer_signal():
        code = FirstProcess().run(node.command(stage, config))
    return ended(stage, code, read_status(layout, stage), ranked=node.nodes * node.processes > 1)


def ended(stage: str, code: int, said: StageStatus | None, *, ranked: bool = False) -> StageStatus:
    """How a stage ended: as it reported, where that fits the exit code, or where it was through and only its process
    was ended. The exit code of torchrun (``ranked``) may be that of another rank; it alone states whether rank 0
    stopped on request, or was stopped by torch because another rank had failed."""
    if said is not None and ranked and (said.exit_code != EXIT_STOPPED or code in (0, EXIT_STOPPED)):
        return said
    if said is not None and (said.exit_code == code or (said.exit_code == 0 and code > SIGNALLED)):
        return said
    if ranked and said is not None:
        return StageStatus(code, f"a rank of this node failed with exit code {code}; the log says which and why")
    if code == EXIT_STOPPED:
        return StageStatus(code, f"stopped on request before stage {stage} had begun")
    if code > SIGNALLED:
        how = f"stage {stage} was ended by signal {code - SIGNALLED} and did not say why; its log may"
        return StageStatus(code, how + (" (out of memory?)" if code - SIGNALLED == signal.SIGKILL else ""))
    return StageStatus(code or 1, f"stage {stage} ended with exit code {code} and did not say why; its log may")


def follow(node: Node, stage: str, config: Path) -> StageStatus:
    """Run the ranks of another node; how they ended."""
    first = FirstProcess()
    with STOPPING.defer_signal():
        code = first.run(node.command(stage, config))
    if signal.SIGTERM in first.received and code in (0, EXIT_LOST, SIGNALLED + signal.SIGTERM):
        code = EXIT_STOPPED
    other = f"node {node.number} failed with exit code {code}; the log says which rank and why"
    return StageStatus(code, MEANINGS.get(code, other))


if __name__ == "__main__":
    sys.exit(main())
