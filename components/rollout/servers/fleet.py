"""All servers of a run: load is spread, what is safe to repeat is repeated, and bad servers are replaced."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from components.config.servers import ServerEngine
from components.errors import CorrectableError, InputError, PeerLost
from components.processes.stopping import STOPPING
from components.rollout.servers.client import Request, ServerFault, Written
from components.rollout.servers.local import Given, Origin
from components.rollout.servers.server import Prepare, Server, Stale, together

T = TypeVar("T")
PAUSE = 1.0
"""Seconds before a server that could not be made sound is tried again."""
LAST = 20.0
"""Seconds that a stopping run still waits for a sound server: the servers may be stopping, too, and
the time until it is killed is needed for its checkpoint."""


class Fleet:
    """Sends requests to sound servers only.

    A request is repeated on another server after a broken connection, a timeout, a 5xx or an answer that cannot be:
    it has its own seed, so a repeat does no harm. What a server refuses (4xx) is an error at once. A server that
    failed has to make one token; one that cannot is drained: its requests go elsewhere, and it is opened again,
    prepared and only then used again.

    Args:
        prepare: Makes a server that answers fit for use: the right model, the present weights, checked.
        present: The number of the present weights.
        note: Takes down what happened to a server: its name, one word, and what it said.
        canary: A prompt and its stop tokens.
    """

    def __init__(
        self,
        origins: Sequence[Origin],
        prepare: Prepare,
        present: Callable[[], int],
        settings: ServerEngine,
        canary: tuple[tuple[int, ...], tuple[int, ...]],
        note: Callable[[str, str, str], None],
    ) -> None:
        self.servers = [Server(origin) for origin in origins]
        self.lock = asyncio.Lock()  # held while weights or the fitness of a server are at stake
        self._prepare, self._present, self._settings, self._canary = prepare, present, settings, canary
        self._note = note
        self._changed = asyncio.Event()
        self._held = False
        self._awake = asyncio.Event()
        self._awake.set()
        self._watching: asyncio.Task[None] | None = None
        self._until: float | None = None

    @property
    def serving(self) -> list[Server]:
        return [server for server in self.servers if server.serving]

    @property
    def asleep(self) -> bool:
        """Whether the memory of the servers is lent: none of them may be used or opened."""
        return not self._awake.is_set()

    async def start(self) -> None:
        """Open and prepare all servers; each of them must be fit."""
        await together([self._start(server) for server in self.servers])
        self._watching = asyncio.create_task(self._watch())

    async def _start(self, server: Server) -> None:
        try:
            server.client = await server.origin.open()
            await self._fit(server)
        except ServerFault as fault:
            kind = PeerLost if isinstance(server.origin, Given) else InputError  # what others run may come later
            raise kind(
                f"{server.name} did not start: {fault}",
                where="rollout.engine",
                how="fix what it says; a server of vLLM needs the environment of constraints-vllm.txt",
            ) from fault

    async def _fit(self, server: Server) -> None:
        """Prepare a server, and again where other weights have come meanwhile; then it serves."""
        while True:
            number = self._present()
            try:
                await self._prepare(server)
            except (ServerFault, CorrectableError):
                if number == self._present():
                    raise
                continue
            async with self.lock:
                if number == self._present():
                    server.serving = True
                    self._note(server.name, "serves", server.link.url)
                    return

    async def give_up(self, reason: str) -> None:
        """No server is to be used any more."""
        for server in self.servers:
            self._end(server, f"{server.said}; {reason}")
        self._notify()

    def _end(self, server: Server, said: str) -> None:
        """Use a server no more, and end all that is done with it."""
        server.serving, server.dead, server.said = False, True, said
        for task in (*server.calls, server.repairing):
            if task is not None:
                task.cancel()

    async def exclude(self, number: int) -> bool:
        """Use a server no more, as long as another one serves; returns whether it was taken out."""
        async with self.lock:
            if number >= len(self.servers):  # the run goes on with fewer servers than it had
                return False
            server = self.servers[number]
            if not any(other.serving for other in self.servers if other is not server):
                return False
            self._end(server, "excluded: what it samples is not sound")
            self._note(server.name, "excluded", server.said)
        self._notify()
        return True

    async def close(self) -> None:
        """Stop watching and end all processes."""
        tasks = [task for task in (self._watching, *(server.repairing for server in self.servers)) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in self.servers:
            server.serving = False
            if server.client is not None:
                await server.client.aclose()
        await asyncio.gather(*(server.origin.close() for server in self.servers))

    async def rest(self, sleep: Callable[[Server], Awaitable[None]]) -> None:
        """Put the servers to sleep until `wake`.

        One that is being replaced is waited for: it could not start while its memory is lent. One that does not go to
        sleep is drained, and its process ends at once, as does that of every server that is not in use.
        """
        while not self.asleep:
            if replaced := self._replaced():
                await asyncio.wait(replaced)
            async with self.lock:
                if not self._replaced():
                    self._awake.clear()
                    await together([self._put_to_sleep(server, sleep) for server in self.serving])
                    await together([server.origin.close() for server in self.servers if not server.serving])

    def _replaced(self) -> list[asyncio.Task[None]]:
        """What replaces servers at present."""
        return [one.repairing for one in self.servers if one.repairing is not None and not one.repairing.done()]

    async def _put_to_sleep(self, server: Server, sleep: Callable[[Server], Awaitable[None]]) -> None:
        try:
            await sleep(server)
        except ServerFault as fault:
            self.drain(server, ServerFault(f"it did not go to sleep: {fault}"))

    def wake(self) -> None:
        """Those that were put to sleep have been woken up; others may be opened again."""
        self._awake.set()

    @contextlib.asynccontextmanager
    async def updating(self) -> AsyncIterator[None]:
        """No server is given a new request, nor made sound, inside; requests in flight stay where they are."""
        async with self.lock:
            self._held = True
            try:
                yield
            finally:
                self._held = False
                self._notify()

    async def answer(
        self, requests: Sequence[Request], sound: Callable[[Sequence[Written]], None]
    ) -> list[list[Written]]:
        """The completions of all requests, in order. ``sound`` raises `Stale` for those that must not be used."""
        return await together([self._answer(request, sound) for request in requests])

    async def _answer(self, request: Request, sound: Callable[[Sequence[Written]], None]) -> list[Written]:
        tried: list[str] = []
        avoid: set[Server] = set()
        while len(tried) < self._settings.attempts:
            async with self._free(avoid, request.n) as server:
                try:
                    written = await self._run(server, server.link.generate(request, self._settings.request_timeout))
                    server.answered = True
                    sound(written)
                    return [replace(one, server=self.servers.index(server)) for one in written]
                except ServerFault as fault:
                    problem = fault
            tried.append(f"{server.name}: {problem}")
            self._note(server.name, "failed", str(problem))
            avoid.add(server)
            await self._suspect(server, problem)
        raise PeerLost(
            f"no server could complete a prompt in {len(tried)} attempts:\n  " + "\n  ".join(tried),
            where="rollout.engine",
            how="look into the servers' logs; raise rollout.engine.request_timeout where they are only slow",
        )

    async def _run(self, server: Server, call: Coroutine[Any, Any, T]) -> T:
        """Await a call that ends with a fault when its server is drained."""
        task = asyncio.create_task(call)
        server.calls.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if server.serving or (current is not None and current.cancelling()):
                raise
            raise ServerFault(f"drained: {server.said}") from None
        finally:
            server.calls.discard(task)

    @contextlib.asynccontextmanager
    async def _free(self, avoid: set[Server], samples: int) -> AsyncIterator[Server]:
        """The sound server with the least to do, and if possible none of ``avoid``; waits for one."""
        clock = asyncio.get_running_loop().time
        give_up = clock() + self._settings.recovery_timeout
        while True:
            if self.serving:
                give_up = clock() + self._settings.recovery_timeout
            free = [server for server in self.serving if server.room(samples, self._settings.concurrency)]
            if free and not self._held:
                break
            await self._wait(give_up)
        try:
            yield min(free, key=lambda server: (server in avoid, len(server.calls)))
        finally:
            self._notify()

    async def await_one(self) -> None:
        """Return when a server is sound.

        Raises:
            PeerLost: none is, within the time for recovery, or none can be any more.
        """
        give_up = asyncio.get_running_loop().time() + self._settings.recovery_timeout
        while not self.serving:
            await self._wait(give_up)

    async def _wait(self, give_up: float) -> None:
        """Wait for a change."""
        now = asyncio.get_running_loop().time()
        left = give_up - now
        if STOPPING.requested:
            self._until = self._until or now + LAST
            left = left if self.serving else min(left, self._until - now)
        if all(server.dead for server in self.servers) or left <= 0:
            said = "\n  ".join(f"{server.name}: {server.said}" for server in self.servers)
            raise PeerLost(
                f"no inference server is left; what each said last:\n  {said}",
                where="rollout.engine",
                how="fix the servers and start the run again: it goes on from its newest checkpoint",
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(left, PAUSE)):  # `wait_for` loses a cancellation that comes with the change
                await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _suspect(self, server: Server, fault: ServerFault) -> None:
        """Drain a server unless it can still make a token."""
        async with self.lock:
            if not server.serving:
                return
            if isinstance(fault, Stale) or not server.origin.alive():
                self.drain(server, fault)
            else:
                await self._check_canary(server)
        self._notify()

    async def _check_canary(self, server: Server) -> None:
        prompt, stop = self._canary
        try:
            await server.link.canary(prompt, stop, self._settings.canary_timeout)
        except (ServerFault, CorrectableError) as fault:
            self.drain(server, ServerFault(f"its canary failed: {fault}"))

    async def _watch(self) -> None:
        """Look after the servers while they work."""
        while True:
            await asyncio.sleep(self._settings.canary_every)
            async with self.lock:
                for server in self.serving:
                    if not server.origin.alive():
                        self.drain(server, ServerFault("its process has ended"))
                quiet = [server for server in self.serving if server.calls and not server.answered]
                await asyncio.gather(*(self._check_canary(server) for server in quiet))
                for server in self.serving:
                    server.answered = False
            self._notify()

    def drain(self, server: Server, fault: ServerFault) -> None:
        """Take a server out, move its requests elsewhere, and begin to make it sound again."""
        server.serving, server.said = False, str(fault)
        self._note(server.name, "drained", server.said)
        for call in server.calls:
            call.cancel()
        server.repairing = asyncio.create_task(self._repair(server))

    async def _repair(self, server: Server) -> None:
        await self._awake.wait()
        while server.origin.may_open():
            try:
                if server.client is not None:
                    await server.client.aclose()
                server.client = await server.origin.open()
                await self._fit(server)
                break
            except (ServerFault, CorrectableError) as error:
                server.said = str(error)
            except Exception as error:  # a mistake of ours: whoever waits must hear of it
                server.said = f"{type(error).__name__}: {error}"
                break
            await asyncio.sleep(PAUSE)
        server.dead = not server.serving
        if server.dead:
            self._note(server.name, "dead", server.said)
        self._notify()
