"""Several worker processes that share a queue of requests; whichever fails is replaced.

`concurrent.futures` and `multiprocessing` send pickles, and a pool of theirs ends with a worker that is killed.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from components.rewards.process import STARTUP_SECONDS, WorkerProcess, wait
from components.working import Work, working

Reply = dict[str, Any]
AHEAD = 32
"""Requests that a worker holds at most. It answers one before it looks at the next."""
REPLIES = ({"accuracy", "parts", "metrics"}, {"values"}, {"unscorable"})
"""The keys of a reply: a verdict, what a function says of a group, or the reason why there is neither."""
NO_VERDICT = "crash: the verifier's process wrote what is no verdict"


class Lane:
    """One place in the pool: a worker, and the requests that it holds, oldest first."""

    def __init__(self, command: Sequence[str], hello: bytes) -> None:
        self._start = (command, hello)
        self.held: deque[int] = deque()
        self._begin()

    def _begin(self) -> None:
        self.worker, self.fresh = WorkerProcess(*self._start), True
        self.deadline = time.monotonic() + STARTUP_SECONDS

    def restart(self) -> None:
        """Another worker, which holds nothing."""
        self.worker.kill()
        self.held.clear()
        self._begin()


class Pool:
    """Answers requests in order, each within ``timeout`` seconds of the answer before it.

    A death or a lack of memory may be the doing of an earlier request, so it counts only in a worker that has answered
    nothing before: in another one it leads to a fresh worker and a second try. Replies thus do not depend on the number
    of workers, nor on the other requests.
    """

    def __init__(self, command: Sequence[str], hello: bytes, workers: int, timeout: float) -> None:
        self._start, self._workers, self._timeout = (command, hello), workers, timeout
        self._lanes: list[Lane] = []

    def close(self) -> None:
        """End every worker; the next request starts new ones."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.worker.kill()

    def ask(self, requests: Sequence[bytes]) -> list[Reply]:
        """One reply per request, in order. An interrupted call ends all workers, so that no stale reply is left."""
        try:
            for _ in range(len(self._lanes), min(self._workers, len(requests))):
                self._lanes.append(Lane(*self._start))
            with working("verifying", len(requests), "answers") as work:
                return _Round(requests, self._lanes, self._timeout, work).run()
        except BaseException:
            self.close()
            raise


class _Round:
    """One call of `Pool.ask`."""

    def __init__(self, requests: Sequence[bytes], lanes: Sequence[Lane], timeout: float, work: Work) -> None:
        self._requests, self._lanes, self._timeout, self._work = requests, lanes, timeout, work
        self._pending = deque(range(len(requests)))
        self._replies: dict[int, Reply] = {}

    def run(self) -> list[Reply]:
        while len(self._replies) < len(self._requests):
            for lane in self._lanes:
                if not lane.held:
                    self._feed(lane)
            busy = [lane for lane in self._lanes if lane.held]
            soonest = min(lane.deadline for lane in busy) - time.monotonic()
            readable, writable = wait([lane.worker for lane in busy], soonest)
            now = time.monotonic()
            for lane in busy:
                if lane.worker in writable:
                    lane.worker.flush()
                moved = lane.worker in readable and self._read(lane)
                if not moved and now > lane.deadline:
                    if not lane.worker.started:
                        raise lane.worker.failure()
                    self._failed(lane, f"timeout: no verdict within {self._timeout:g} s")
            self._work.done = len(self._replies)
        return [self._replies[index] for index in range(len(self._requests))]

    def _feed(self, lane: Lane) -> None:
        """Give a lane its share of what is left: many at first, single ones in the end, so that all end together."""
        share = max(1, min(AHEAD, len(self._pending) // (2 * len(self._lanes))))
        self._give(lane, [self._pending.popleft() for _ in range(min(share, len(self._pending)))])

    def _give(self, lane: Lane, indices: Sequence[int]) -> None:
        lane.held.extend(indices)
        lane.worker.send([self._requests[index] for index in indices])
        if lane.worker.started:
            lane.deadline = time.monotonic() + self._timeout

    def _read(self, lane: Lane) -> bool:
        """Take what has arrived; False for a part of a line, which is no sign of life."""
        waiting = not lane.worker.started
        lines = lane.worker.receive()
        if waiting and lane.worker.started:
            lane.deadline = time.monotonic() + self._timeout
        if lines is None:
            self._failed(lane, lane.worker.exit_description())
            return True
        if lane.worker.endless:
            self._failed(lane, NO_VERDICT)
            return True
        for line in lines:
            reply = parse(line)
            if not lane.held:  # an answer without a request
                lane.restart()
                return True
            if reply is None:
                self._failed(lane, NO_VERDICT)
                return True
            if reply.get("unscorable", "").startswith("memory:") and not lane.fresh:
                self._failed(lane, reply["unscorable"])
                return True
            self._replies[lane.held.popleft()] = reply
            lane.fresh, lane.deadline = False, time.monotonic() + self._timeout
        return bool(lines) or (waiting and lane.worker.started)

    def _failed(self, lane: Lane, reason: str) -> None:
        """Replace the worker; the oldest request that it held is to blame, the others go back to the queue."""
        index, *others = lane.held
        again = not lane.fresh and reason.startswith(("memory:", "crash:"))
        self._pending.extendleft(reversed(others))
        lane.restart()
        if again:
            self._give(lane, [index])
        else:
            self._replies[index] = {"unscorable": reason}


def parse(line: bytes) -> Reply | None:
    """A reply, or None for anything else."""
    try:
        reply = json.loads(line)
    except ValueError:
        return None
    return reply if isinstance(reply, dict) and any(keys <= reply.keys() for keys in REPLIES) else None
