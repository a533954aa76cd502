"""Where episodes wait for the policy: it answers all of them at once, when each one waits or has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = dict[str, Any]
Exchange = Callable[[list[Message]], Awaitable[list[Message]]]
GRACE = 5.0
"""Seconds that an episode has to end in when it is cancelled."""


class Table:
    """Makes the requests to the policy a matter of the episodes alone: the batches are the same however long an
    environment takes for a turn, and their order is that of the episodes."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[tuple[Message, asyncio.Future[Message]]]] = {}
        self._moved = asyncio.Event()

    async def request(self, episode: int, message: Message) -> Message:
        """The policy's answer to one request of an episode."""
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(episode, []).append((message, future))
        self._moved.set()
        return await future

    async def serve(self, running: Mapping[int, asyncio.Task[Any]], exchange: Exchange, timeout: float) -> set[int]:
        """Let the policy answer until every episode has ended.

        Returns:
            The episodes that were ended because they neither ended nor sent a request within ``timeout`` seconds.
        """
        for task in running.values():
            task.add_done_callback(lambda _: self._moved.set())
        late: set[int] = set()
        while left := {number: task for number, task in running.items() if not task.done() and number not in late}:
            late |= await self._quiet(left, timeout)
            requests = [(number, *pair) for number in sorted(self._waiting) for pair in self._waiting[number]]
            self._waiting.clear()
            if requests:
                answers = await exchange([{"episode": number, **one} for number, one, _ in requests])
                for (_, _, future), answer in zip(requests, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
        return late

    async def _quiet(self, running: Mapping[int, asyncio.Task[Any]], timeout: float) -> set[int]:
        """Wait until every episode waits for the policy or has ended; those that take too long are ended."""
        end = asyncio.get_running_loop().time() + timeout
        while busy := {n: task for n, task in running.items() if not task.done() and n not in self._waiting}:
            left = end - asyncio.get_running_loop().time()
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), max(0.0, left))
            except TimeoutError:
                for task in busy.values():
                    task.cancel()
                await asyncio.wait(busy.values(), timeout=GRACE)
                return set(busy)
        return set()
