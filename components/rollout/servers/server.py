"""One server of a fleet, and what may be done with several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from components.rollout.servers.background import gathered
from components.rollout.servers.client import ServerClient, ServerFault
from components.rollout.servers.local import Origin

T = TypeVar("T")


class Stale(ServerFault):
    """A server that samples from other weights than the present ones."""


@dataclass(eq=False)
class Server:
    """One server, or the place of one."""

    origin: Origin
    client: ServerClient | None = None
    serving: bool = False
    dead: bool = False
    said: str = "nothing yet"
    slots: int | None = None
    """Sequences that it decodes at a time; None where it does not say."""
    answered: bool = False
    """Whether it has completed something since it was last looked after."""
    calls: set[asyncio.Task[Any]] = field(default_factory=set)
    repairing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.origin.name

    @property
    def link(self) -> ServerClient:
        if self.client is None:
            raise ServerFault("it was never reached")
        return self.client

    def room(self, samples: int, concurrency: int) -> bool:
        """Whether it takes one more prompt with so many samples. One slot is kept for the canary: it must not queue
        behind the work that it watches."""
        fitting = concurrency if self.slots is None else max(1, (self.slots - 1) // samples)
        return len(self.calls) < min(concurrency, fitting)


Prepare = Callable[[Server], Awaitable[None]]


async def together(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order; the first error ends the others."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await gathered(tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
