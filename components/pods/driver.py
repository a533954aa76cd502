"""The container ``driver``: ``python -m components.pods.driver STAGE --config FILE``, in the run's workspace.

Runs one stage as `python -m components` does, in a child. Exit codes are those of the stage (`components.errors`); 75
waits a while, so that whatever it has lost is on record first. ``--state s3://bucket/prefix/<run>`` says where its
checkpoints and its output are kept (`components.pods.depot`) when it shares no folder with anybody.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from components.errors import EXIT_STOPPED, EvenkeelError
from components.layout import Layout
from components.pods import place
from components.pods.child import FirstProcess
from components.pods.ending import leave, status_of
from components.processes.stopping import STOPPING, Asked
from components.status import StageStatus, clear_status, read_status

SIGNALLED = 128
"""Exit codes above it are 128 plus the number of a signal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stage; returns the exit code of the container."""
    options = _parser().parse_args(arguments)
    try:
        with STOPPING.on_signal():
            place.check(os.environ)
            status = run(options.stage, options.config, options.state)
    except EvenkeelError as error:
        status = status_of(error)
    except Asked:
        status = StageStatus(EXIT_STOPPED, "asked to stop before the stage began")
    if status.exit_code:
        print(f"driver: {status.message}", file=sys.stderr, flush=True)
    return leave(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m components.pods.driver", description="Run one stage in a pod.")
    parser.add_argument("stage", help="as of `python -m components`")
    parser.add_argument("--config", type=Path, required=True, help="YAML file of the settings")
    parser.add_argument("--state", metavar="S3-URI", help="the run's files, s3://bucket/prefix/run")
    return parser


def run(stage: str, config: Path, uri: str | None) -> StageStatus:
    """Run the stage, with its state kept where ``uri`` says; how it ended."""
    layout = Layout()
    if uri is None:
        with STOPPING.unheard():
            return execute(stage, config, layout)
    from components.pods.depot import Depot  # loads boto3
    from components.pods.keeper import Keeper

    keeper = Keeper(Depot.of(uri), layout, stage)
    with STOPPING.unheard():  # the child hears it, and what it leaves is kept
        with keeper:
            status = execute(stage, config, layout)
        return keeper.finish(status)


def execute(stage: str, config: Path, layout: Layout) -> StageStatus:
    """Run the stage in a child; how it ended."""
    clear_status(layout, stage)
    code = FirstProcess().run([sys.executable, "-m", "components", stage, "--config", str(config)])
    return ended(stage, code, read_status(layout, stage))


def ended(stage: str, code: int, said: StageStatus | None) -> StageStatus:
    """How a stage ended: by its own word, where that fits its exit code, or where it was through and only its process
    was ended."""
    if said is not None and (said.exit_code == code or (said.exit_code == 0 and code > SIGNALLED)):
        return said
    if code > SIGNALLED:
        how = f"stage {stage} was ended by signal {code - SIGNALLED} and did not say why; its log may"
        return StageStatus(code, how + (" (out of memory?)" if code - SIGNALLED == signal.SIGKILL else ""))
    return StageStatus(code, f"stage {stage} ended with exit code {code} and could not write why; its log says it")


if __name__ == "__main__":
    sys.exit(main())
