"""Looks after the files of a stage whose pods share no folder.

State while its stage runs, output at its end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from types import TracebackType

from components.errors import EXIT_BAD_INPUT, EXIT_LOST, EXIT_NO_CANDIDATE, EvenkeelError, PeerLost
from components.layout import Layout
from components.pods.depot import Depot
from components.pods.parcels import Sender
from components.pods.state import State, Writer
from components.pods.workspace import outputs
from components.processes.environments import ATTEMPT
from components.registry.base import Unavailable
from components.status import StageStatus, status_path

OVER = (0, EXIT_BAD_INPUT, EXIT_NO_CANDIDATE)
"""Exit codes after which the stage is not started again."""
EVERY = 1.0
"""Seconds between two looks whether there is another checkpoint."""
PAUSE = 15.0
"""Seconds after one that could not be put."""
PATIENCE = 60.0
"""Seconds for which a bucket that does not answer is tried again at the end of a stage, when what is not stored is lost
with the pod."""


class Keeper:
    """Restores the state of a stage when it is made; inside the context, in a thread, puts every checkpoint.

    The stage is another process, whose checkpoints appear whole: nothing of this slows its loop. An error of the bucket
    does not end the stage either. It is said, and the next checkpoint is another chance.

    Raises:
        EvenkeelError: the state cannot be requested, or not be copied here.
    """

    def __init__(self, depot: Depot, layout: Layout, stage: str) -> None:
        self._depot, self._layout, self._stage = depot, layout, stage
        who = f"{os.uname().nodename}, attempt {os.environ.get(ATTEMPT, 'unknown')}"
        bucket = depot.bucket("state")
        self._writer = Writer(bucket, who)
        self._state = State(bucket, layout.state / stage, self._writer)
        if (step := self._state.restore()) is not None:
            print(f"learner: the checkpoint of step {step} was brought here", flush=True)
        self._over = threading.Event()
        self._superseded: PeerLost | None = None
        self._thread = threading.Thread(target=self._keep, name="state", daemon=True)

    def __enter__(self) -> Keeper:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Returns when nothing is being put any more."""
        self._over.set()
        self._thread.join()

    def _keep(self) -> None:
        pause = EVERY
        while not self._over.wait(pause):
            try:
                self._state.put()
                pause = EVERY
            except PeerLost as lost:
                self._superseded = lost
                os.kill(os.getpid(), signal.SIGTERM)  # as on a stop request: the stage ends
                return
            except Exception as error:
                if not isinstance(error, (EvenkeelError, OSError)):
                    traceback.print_exc()  # a bug, and no reason to give up later checkpoints
                print(f"learner: the newest checkpoint is not safe yet: {error}", file=sys.stderr, flush=True)
                pause = PAUSE

    def finish(self, status: StageStatus) -> StageStatus:
        """Put what is left: the answer of a stage that has ended, the newest checkpoint of one that is to go on.

        Returns:
            How the container ends.
        """
        over = status.exit_code in OVER
        try:
            if self._superseded is not None:
                raise self._superseded
            if over:
                until_stored(self._writer.check)
                until_stored(partial(self._put_answer, with_output=status.exit_code == 0))
            else:
                until_stored(self._state.put)
            return status
        except PeerLost as lost:
            return StageStatus(lost.exit_code, str(lost))
        except (EvenkeelError, OSError) as error:
            what = "what the stage wrote" if over else "the newest checkpoint"
            said = f"{status.message}\n" if status.message else ""
            code = status.exit_code or EXIT_LOST
            return StageStatus(code, f"{said}{what} could not be stored, and is lost with this pod: {error}")

    def _put_answer(self, *, with_output: bool) -> None:
        files = [status_path(self._layout, self._stage)]
        files += outputs(self._layout.root, self._stage) if with_output else ()
        named = {path.relative_to(self._layout.root).as_posix(): path for path in files}
        name = f"{self._writer.number:06d}.json"
        Sender(self._depot.bucket("output")).put(name, named, {"stage": self._stage})


def until_stored(put: Callable[[], object]) -> None:
    """Call ``put`` until the bucket answers, for `PATIENCE` seconds.

    Raises:
        Unavailable: it has not.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            put()
            return
        except Unavailable as error:
            if time.monotonic() > until:
                raise
            print(f"learner: the bucket does not answer, and is tried again: {error}", file=sys.stderr, flush=True)
            time.sleep(EVERY)
