"""The log of rank 0 as it grows, copied to the other logs of the run."""

from __future__ import annotations

import re
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from components.errors import EvenkeelError
from components.launch.kubernetes.api import Cluster
from components.launch.kubernetes.observed import gather
from components.progress import relayed

PAUSE = 3.0
"""Seconds between two looks for a pod whose log can be read."""


Moment = tuple[datetime, str]
"""When a line was written: the second, and nanoseconds as digits. A node gives it in its own time zone."""


def moment(stamp: str) -> Moment | None:
    """None where it is no time: the node itself says, without one, that it has no log."""
    try:
        whole = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if whole.tzinfo is None:
        return None
    fraction = re.search(r"\.(\d+)", stamp)
    return whole.astimezone(UTC).replace(microsecond=0), (fraction[1] if fraction else "").ljust(9, "0")


class Follower:
    """A thread that copies the log of each pod with rank 0, from its beginning, while the block runs. What the log says
    of progress is reported here.

    The log is for people; a part that cannot be had is missed and said so, and nothing depends on it.
    """

    def __init__(self, cluster: Cluster, name: str, uid: str, stage: str, target: Path) -> None:
        self._cluster, self._name, self._uid, self._stage, self._target = cluster, name, uid, stage, target
        self._over = threading.Event()
        self._seen: dict[str, Moment] = {}  # the time of each pod's last line
        self._untimed: set[tuple[str, str]] = set()
        self._thread = threading.Thread(target=self._run, name="driver-log", daemon=True)

    def __enter__(self) -> Self:
        self._target.parent.mkdir(parents=True, exist_ok=True)
        self._target.write_bytes(b"")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if kind is None:
            self._thread.join(PAUSE * 2)

    def _run(self) -> None:
        last, said = False, ""
        while not last:
            last = self._over.wait(PAUSE)  # one more look after the end: the last lines matter most
            try:
                for pod in gather(self._cluster, self._name, self._uid).leading():
                    self._copy(pod["metadata"]["name"], follow=not last)
                said = ""
            except EvenkeelError as error:
                if error.what != said:
                    print(f"the log of rank 0 cannot be read now: {error.what}", file=sys.stderr, flush=True)
                said = error.what

    def _copy(self, pod: str, *, follow: bool) -> None:
        """Append what a pod has written since the last look. Requests have a resolution of a second, so lines of the
        last second come again and are passed over by their time."""
        seen = self._seen.get(pod)
        with self._target.open("a", encoding="utf-8") as log:
            since = seen[0] if seen else None
            for line in self._cluster.log(pod, "learner", since=since, timestamps=True, follow=follow):
                stamp, _, text = line.rstrip("\n").partition(" ")
                when = moment(stamp)
                if when is None:
                    text = line.rstrip("\n")
                    new = (pod, text) not in self._untimed
                    self._untimed.add((pod, text))
                elif new := seen is None or when > seen:
                    self._seen[pod] = when
                if new:
                    log.write(text + "\n")
                    log.flush()
                    relayed(text, self._stage)
