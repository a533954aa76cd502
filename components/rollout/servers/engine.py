"""The engine whose completions come from inference servers."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from components.config.rollout import RolloutSettings
from components.config.servers import ServerEngine as ServerSettings
from components.config.servers import VllmEngine
from components.directories import write_directory
from components.errors import InputError, PeerLost
from components.files import append_line
from components.policy import Policy
from components.policy.policy import check_names
from components.policy.weights import Superseded, Weights
from components.policy.writing import Named
from components.processes.living import claim, release
from components.rollout.base import Engine, Sampling
from components.rollout.servers.answers import SEEDS, Labels, check_room, completed, requested
from components.rollout.servers.background import Background
from components.rollout.servers.check import Gap, Proof, check_facts, check_tokens, limits, probes
from components.rollout.servers.client import Facts, ServerFault, Written
from components.rollout.servers.fleet import Fleet
from components.rollout.servers.local import build_transfer, origins, stored, write_start
from components.rollout.servers.server import Server, together
from components.rollout.servers.transfer import Spool, ahead
from components.seeds import derive
from components.types import Completion
from components.working import working

MODEL = "model"
"""What servers start from, in the folder that they share with the run."""
POLL = 0.05
"""Seconds between two looks whether there are other weights."""
T = TypeVar("T")


class ServerEngine(Engine):
    """Completions from servers that hold the policy's weights, each hand-over of which is proved by log-probabilities.

    The first server writes a text when the engine is made. After every hand-over each server returns its
    log-probabilities of that text, which are compared with those of the weights themselves, computed once where the
    weights are (`Proof`). All servers must be up and sound when the engine is made; later on, one that fails is
    replaced while the others go on. Weights may be handed over while another thread generates: requests in flight go on
    with the new ones, and `Completion.versions` states which token came from which. What happens to the servers is kept
    in ``rollout.jsonl`` next to their logs.

    Args:
        policy: configuration, names and tokenizer; its values are not used.
        present: the weights to begin with.

    Raises:
        InputError: a server does not start, or is not one for this policy.
    """

    def __init__(
        self, policy: Policy, settings: RolloutSettings, servers: ServerSettings, logs: Path, present: Weights
    ) -> None:
        alone = isinstance(servers, VllmEngine) and servers.transfer == "adapter"
        if alone and present.apart is None:  # a stage without an adapter
            servers = servers.model_copy(update={"transfer": "files"})
        self._apart = present.apart if alone else None
        self._policy, self._settings, self._temperature = policy, servers, settings.temperature
        dtype = str(policy.model.dtype).removeprefix("torch.") if servers.dtype == "policy" else servers.dtype
        self._dtype: str = dtype
        self._labels, self.version, self._torn = Labels(), 1, ""  # the number of the latest hand-over
        # In a folder that others may use as well everything of ours lies in one of our own.
        own = logs / "rollout" if servers.folder is None else servers.folder / f"evenkeel-{self._labels.run}"
        self._folder, self._log = own.absolute(), logs / "rollout.jsonl"
        if servers.folder is not None:
            claim(self._folder)
        self._facts: dict[str, Facts] = {}
        self._probes = probes(policy)
        places = origins(servers, self._folder / MODEL, dtype, logs, self._apart)
        for left in self._folder.glob("kept-*"):  # by a run that was killed
            shutil.rmtree(left)
        write_directory(self._folder / MODEL, lambda folder: write_start(policy, present, self._apart, folder))
        # What servers begin with can be read whatever the learner does meanwhile.
        self._weights: Mapping[str, Tensor] = stored(self._folder / MODEL, self._apart)
        self._kept, self._scored_in = 0, present.dtype
        seed = derive(0, "check", self.version) % SEEDS
        self._proof = Proof(policy, servers.check, settings.temperature, seed, present.scores)
        device = next(iter(present.values())).device
        self._transfer = build_transfer(servers, dtype, self._folder, device, self._apart)
        self._loop = Background()
        canary = (self._proof.prompt, self._proof.stop)
        try:
            self._fleet = Fleet(places, self._prepare, lambda: self.version, servers, canary, self._note)
            with working(f"starting {len(places)} inference servers"):
                self._loop.run(self._fleet.start())
            self._proof.started()
        except BaseException:
            self.close()
            raise

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        """As `Engine.generate`. Batches on a server differ from run to run, and so may the last bits of a
        log-probability.

        Raises:
            PeerLost: no sound server is left, or they sleep.
            InputError: no server can serve the request.
        """
        if self._torn:
            raise InputError(self._torn, where="rollout.engine", how="start the run again from its newest checkpoint")
        if self._fleet.asleep:
            what = "the servers sleep, and no weights have been handed over since"
            raise PeerLost(what, where="rollout.engine", how="start the run again from its newest checkpoint")
        check_room(self.max_positions, prompts, sampling)
        requests, since = requested(self._policy, prompts, sampling), self.version
        with working("sampling on servers", len(prompts) * sampling.n, "completions") as work:

            def sound(written: Sequence[Written]) -> None:
                for one in written:
                    self._labels.numbers(one.labels, since, self.version)
                work.add(len(written))

            answers = self._loop.run(self._fleet.answer(requests, sound))

        def completion(one: Written) -> Completion:
            return completed(self._policy, sampling, one, self._labels.numbers(one.labels, since, self.version))

        return [tuple(map(completion, answer)) for answer in answers]

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """As `Engine.load_weights`: returns when every server that is in use has the weights and has proved it. Where
        their log-probabilities are not known, the servers prove no more than that they know them by their label.

        Raises:
            PeerLost: no server could be brought to them.
            InputError: one samples from something else.
        """
        named = self._named(weights)
        expected = None
        if isinstance(weights, Weights) and weights.scores is not None:
            expected, self._scored_in = weights.scores(self._proof.texts, 1.0), weights.dtype
        try:
            with working("sending weights to the servers"):
                self._loop.run(self._hand_over(named, expected))
        except BaseException:
            self._torn = "the servers' weights are torn: a hand-over did not come to its end"
            self._loop.run(self._fleet.give_up(self._torn))
            raise

    def keep(self, weights: Weights) -> Weights:
        """As `Engine.keep`: in files, which servers can read when it comes to that. What they make of a text is known
        of those of the proof alone."""
        if weights.scores is None:
            raise ValueError("only weights whose log-probabilities are known are kept")
        self._kept += 1
        expected, folder = weights.scores(self._proof.texts, 1.0), self._folder / f"kept-{self._kept}"
        spool = Spool(folder, self._transfer.write(self._named(weights), folder))
        return Weights(spool, lambda _texts, _temperature: expected, weights.dtype)

    def rest(self) -> bool:
        """As `Engine.rest`: with ``sleep`` the servers keep neither weights nor cache. What does not go to sleep is
        drained, and replaced after the next hand-over."""
        if not (isinstance(self._settings, VllmEngine) and self._settings.sleep):
            return False
        timeout = self._settings.sync_timeout
        with working("putting the servers to sleep"):
            self._loop.run(self._fleet.rest(lambda server: server.link.sleep(timeout)))
        return True

    def _named(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """What travels of weights, by the names that servers know it by."""
        if isinstance(weights, Weights) and isinstance(weights.tensors, Spool):
            return weights.tensors
        if self._apart is not None:
            if not isinstance(weights, Weights) or weights.apart is None:
                raise TypeError("these servers take an adapter alone, and the weights are merged")
            return weights.apart.learned
        check_names(dict(self._policy.model.named_parameters()), weights)
        return Named(self._policy.model, weights)

    def exclude(self, server: int) -> bool:
        """As `Engine.exclude`: its requests go to the others."""
        return self._loop.run(self._fleet.exclude(server))

    @property
    def max_positions(self) -> int | None:
        """As `Engine.max_positions`: of the server that takes least."""
        return min((f.max_model_len for f in self._facts.values() if f.max_model_len is not None), default=None)

    def cancel(self) -> None:
        """As `Engine.cancel`: calls to servers end, and no server is used after it."""
        self._loop.run(self._fleet.give_up("the run was cancelled"))
        self._loop.cancel()

    def close(self) -> None:
        """As `Engine.close`: ends the servers that were started here, and removes what all of them were given."""
        if hasattr(self, "_fleet"):
            with contextlib.suppress(RuntimeError):  # it has been closed before
                self._loop.run(self._fleet.close())
        self._loop.close()
        self._transfer.close()
        shutil.rmtree(self._folder / MODEL, ignore_errors=True)
        release(self._folder)
        with contextlib.suppress(OSError):  # somebody else's files are there
            self._folder.rmdir()

    def gaps(self) -> dict[str, Gap]:
        """Repeat the log-prob check of every server in use."""

        async def measure() -> dict[str, Gap]:
            async with self._fleet.updating():
                return {s.name: self._proof.gap(await self._scored(s)) for s in self._fleet.serving}

        return self._loop.run(measure())

    async def _hand_over(self, weights: Mapping[str, Tensor], expected: Tensor | None) -> None:
        async with self._fleet.updating():
            self.version += 1
            self._weights, before = weights, self._proof.renew(expected)
            servers = await self._given(self._fleet.serving, self.version, weights)
            self._fleet.wake()
            answers = await together([self._attempt(server, self._scored(server)) for server in servers])
            for server, said in zip(servers, answers, strict=True):
                if said is not None:
                    self._refuse(server, said, before)
        await self._fleet.await_one()

    async def _given(self, servers: Sequence[Server], number: int, weights: Mapping[str, Tensor]) -> list[Server]:
        """Bring servers to the weights of a hand-over, bucket by bucket; those that have them. Others have been
        drained."""
        timeout = self._settings.sync_timeout
        held = False
        async for bucket in ahead(self._transfer.buckets(number, weights)):
            if not held:  # servers go on until there is something for them
                servers, held = await self._each(servers, lambda server: server.link.begin_update(timeout)), True
            servers = await self._each(servers, partial(self._send, bucket))
        return await self._each(servers, lambda server: server.link.finish_update(self._labels.of(number), timeout))

    async def _send(self, bucket: object, server: Server) -> None:
        await self._transfer.send(server.link, bucket)

    async def _each(self, servers: Sequence[Server], call: Callable[[Server], Awaitable[None]]) -> list[Server]:
        """The servers that carried a call out, all at the same time."""

        async def carried_out(server: Server) -> bool:
            await call(server)
            return True

        done = await together([self._attempt(server, carried_out(server)) for server in servers])
        return [server for server, one in zip(servers, done, strict=True) if one]

    async def _attempt(self, server: Server, call: Awaitable[T]) -> T | None:
        """What a server answers; None for one that failed and will be replaced."""
        try:
            return await call
        except ServerFault as fault:
            if not server.serving:
                raise  # it is being prepared
            self._fleet.drain(server, fault)
            return None

    async def _prepare(self, server: Server) -> None:
        """Make a server that has just been opened fit for use, with the present weights. Where others come meanwhile,
        they are the present ones, and the fleet has it prepared again."""
        client, settings = server.link, self._settings
        facts = await client.facts(settings.start_timeout)
        check_facts(server.name, client.url, facts, self._policy, settings, self._dtype)
        self._facts[server.name] = facts
        for text, own in self._probes.items():
            found = await client.tokenize(text, settings.start_timeout)
            check_tokens(server.name, client.url, text, found, own)
        server.slots = facts.max_num_seqs
        await self._transfer.open(client, facts)
        async with self._fleet.lock:  # not in the middle of a hand-over
            number, weights = self.version, self._weights
        try:
            await self._given([server], number, weights)
        except Superseded as error:
            while number == self.version:  # the learner is at work; what it makes of the weights comes next
                await asyncio.sleep(POLL)
            raise ServerFault(str(error)) from error
        # A server's first tokens take long: it compiles what it needs.
        await client.canary(self._proof.prompt, self._proof.stop, settings.start_timeout)
        await self._proof.begin(server.name, client, facts.max_model_len, self._limits(server), settings.sync_timeout)
        said = await self._scored(server)
        async with self._fleet.lock:
            if number == self.version:
                self._refuse(server, said, None)

    async def _scored(self, server: Server) -> list[Written]:
        """What a server makes of the text of the proof."""
        timeout = self._settings.sync_timeout
        said = await together([server.link.score(text, timeout) for text in self._proof.texts])
        for one in said:
            self._labels.numbers(one.labels, self.version, self.version)
        return said

    def _refuse(self, server: Server, said: Sequence[Written], before: Tensor | None) -> None:
        self._proof.refuse(server.name, said, before, self._limits(server))

    def _limits(self, server: Server) -> tuple[float, float]:
        own = (str(dtype).removeprefix("torch.") for dtype in (self._policy.model.dtype, self._scored_in))
        return limits(self._settings.check, self._facts[server.name], self._dtype, *own)

    def _note(self, name: str, event: str, said: str) -> None:
        row = {"time": round(time.time(), 3), "server": name, "event": event, "said": said, "weights": self.version}
        append_line(self._log, row)
