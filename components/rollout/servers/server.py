"""One server of a fleet, and what may be done with several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

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
    calls: set[asyncio.Task[Any]] = field(default_factory=set)
    mending: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.origin.name

    @property
    def link(self) -> ServerClient:
        if self.client is None:
            raise ServerFault("it was never reached")
        return self.client


Prepare = Callable[[Server], Awaitable[None]]


async def together(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order; the first error ends the others."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
