"""The engine whose completions come from inference servers."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import Tensor

from components.config.rollout import RolloutSettings
from components.config.servers import ServerEngine as ServerSettings
from components.errors import InputError
from components.files import append_line
from components.policy import Policy
from components.policy.policy import check_names
from components.processes.owner import claim, release
from components.rollout.base import Engine, Sampling
from components.rollout.servers.background import Background
from components.rollout.servers.building import build_transfer, origins, write_model
from components.rollout.servers.check import (
    Gap,
    check_facts,
    check_tokens,
    differences,
    gap,
    limits,
    probes,
    refuse_gap,
)
from components.rollout.servers.client import Facts, Request, ServerFault, Written
from components.rollout.servers.fleet import Fleet
from components.rollout.servers.server import Server, Stale, together
from components.seeds import derive
from components.types import Completion, FinishReason
from components.working import working

MODEL = "model"
"""What servers start from, in the folder that they share with the run."""
SEEDS = 2**31 - 2**16
"""Seeds that both dialects take, room for one per completion of a prompt included."""


class ServerEngine(Engine):
    """Completions from servers that hold the policy's weights, each hand-over of which is proved by log-probabilities.

    A copy of the policy stays here: what the servers say of their tokens is compared with it. All servers must be up
    and sound when the engine is made; later on, one that fails is replaced while the others go on. Weights may be
    handed over while another thread generates: requests in flight go on with the new ones, and `Completion.versions`
    says which token came from which. What happens to the servers is kept in ``rollout.jsonl`` beside their logs.

    Raises:
        InputError: a server does not start, or is not one for this policy.
    """

    def __init__(self, policy: Policy, settings: RolloutSettings, servers: ServerSettings, logs: Path) -> None:
        self._policy, self._settings, self._temperature = policy.frozen_copy(), servers, settings.temperature
        dtype = str(policy.model.dtype).removeprefix("torch.") if servers.dtype == "policy" else servers.dtype
        self._dtype: str = dtype
        self._run, self._number, self._torn = secrets.token_hex(4), 1, ""
        # In a folder that others may use as well everything of ours lies in one of our own.
        own = logs / "rollout" if servers.folder is None else servers.folder / f"evenkeel-{self._run}"
        self._folder, self._log = own.absolute(), logs / "rollout.jsonl"
        if servers.folder is not None:
            claim(self._folder)
        self._facts: dict[str, Facts] = {}
        self._prompt, self._probes = policy.encode_prompt(servers.check.prompt), probes(policy)
        places = origins(servers, self._folder / MODEL, dtype, logs)
        write_model(policy, self._folder / MODEL)
        self._transfer = build_transfer(servers, dtype, self._folder, policy)
        self._transfer.publish(self._number, self._policy.weights())
        self._loop = Background()
        canary = (self._prompt, (policy.eos_id,))
        try:
            self._fleet = Fleet(places, self._prepare, lambda: self._number, servers, canary, self._note)
            with working(f"starting {len(places)} inference servers"):
                self._loop.run(self._fleet.start())
        except BaseException:
            self.close()
            raise

    @property
    def version(self) -> int:
        """The number of the latest hand-over."""
        return self._number

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        """As `Engine.generate`. Batches on a server differ from run to run, and so may the last bits of a
        log-probability.

        Raises:
            PeerLost: no sound server is left.
            InputError: none can do what is asked.
        """
        if self._torn:
            raise InputError(self._torn, where="rollout.engine", how="start the run again from its newest checkpoint")
        self._check_room(prompts, sampling)
        stop = tuple(sorted({self._policy.eos_id, *sampling.stop}))
        requests = [
            Request(
                tuple(prompt),
                sampling.n,
                sampling.max_new_tokens,
                sampling.temperature,
                derive(sampling.seed, "prompt", number) % SEEDS,
                stop,
            )
            for number, prompt in enumerate(prompts)
        ]
        since = self._number

        with working("sampling on servers", len(prompts) * sampling.n, "completions") as work:

            def sound(written: Sequence[Written]) -> None:
                for one in written:
                    self._versions(one.labels, since)
                work.add(len(written))

            answers = self._loop.run(self._fleet.answer(requests, sound))
        return [tuple(self._completion(one, since, stop) for one in answer) for answer in answers]

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """As `Engine.load_weights`: returns when every server that is in use has the weights and has proved it.

        Raises:
            PeerLost: no server could be brought to them.
            InputError: one samples from something else.
        """
        check_names(dict(self._policy.model.named_parameters()), weights)
        try:
            with working("sending weights to the servers"):
                self._loop.run(self._hand_over(weights))
        except BaseException:
            self._torn = "the servers' weights are torn: a hand-over did not come to its end"
            self._loop.run(self._fleet.give_up(self._torn))
            raise

    def exclude(self, server: int) -> bool:
        """As `Engine.exclude`: its requests go to the others."""
        return self._loop.run(self._fleet.exclude(server))

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
        """The log-prob check of every server in use, made anew."""

        async def measure() -> dict[str, Gap]:
            async with self._fleet.updating():
                return {s.name: gap(self._off(await self._sample(s))) for s in self._fleet.serving}

        return self._loop.run(measure())

    async def _hand_over(self, weights: Mapping[str, Tensor]) -> None:
        async with self._fleet.updating():
            self._number += 1
            self._transfer.publish(self._number, weights)
            servers = self._fleet.serving
            samples = await together([self._renew(server, weights) for server in servers])
            told = [(server, written) for server, written in zip(servers, samples, strict=True) if written is not None]
            old = [self._off(written) for _, written in told]
            self._policy.load_weights(dict(weights))
            for (server, written), before in zip(told, old, strict=True):
                self._refuse(server, self._off(written), before)
        await self._fleet.await_one()

    async def _renew(self, server: Server, weights: Mapping[str, Tensor]) -> list[Written] | None:
        """Bring a server to the weights and sample from it; None for one that failed and will be replaced."""
        try:
            await self._send(server, weights, self._number)
            return await self._sample(server)
        except ServerFault as fault:
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
            told = await client.tokenize(text, settings.start_timeout)
            check_tokens(server.name, client.url, text, told, own)
        server.slots = facts.max_num_seqs
        await self._transfer.open(client, facts)
        async with self._fleet.lock:  # in the middle of a hand-over the policy still has the weights before it
            number, weights = self._number, self._policy.weights()
        await self._send(server, weights, number)
        # A server's first tokens take long: it compiles what it needs.
        await client.canary(self._prompt, (self._policy.eos_id,), settings.start_timeout)
        written = await self._sample(server)
        async with self._fleet.lock:
            if number == self._number:
                self._refuse(server, self._off(written), None)

    async def _send(self, server: Server, weights: Mapping[str, Tensor], number: int) -> None:
        client, timeout = server.link, self._settings.sync_timeout
        await client.begin_update(timeout)
        await self._transfer.send(client, weights)
        await client.finish_update(self._label(number), timeout)

    async def _sample(self, server: Server) -> list[Written]:
        check = self._settings.check
        seed = derive(0, "check", self._number) % SEEDS
        stop = (self._policy.eos_id,)
        request = Request(self._prompt, check.samples, check.tokens, self._temperature, seed, stop)
        written = await server.link.generate(request, self._settings.sync_timeout)
        for one in written:
            self._versions(one.labels, self._number)
        return written

    def _off(self, written: Sequence[Written]) -> Tensor:
        return differences(self._policy, self._prompt, written, self._temperature)

    def _refuse(self, server: Server, new: Tensor, old: Tensor | None) -> None:
        own = str(self._policy.model.dtype).removeprefix("torch.")
        allowed = limits(self._settings.check, self._facts[server.name], self._dtype, own)
        refuse_gap(server.name, new, old, allowed)

    def _note(self, name: str, event: str, said: str) -> None:
        row = {"time": round(time.time(), 3), "server": name, "event": event, "said": said, "weights": self._number}
        append_line(self._log, row)

    def _label(self, number: int) -> str:
        return f"{self._run}-{number}"

    def _versions(self, labels: Sequence[str], since: int) -> tuple[int, ...]:
        """Numbers of the hand-overs behind labels, none of them from before ``since``."""
        numbers = {self._label(number): number for number in range(since, self._number + 1)}
        odd = set(labels) - numbers.keys()
        if odd:
            raise Stale(f"tokens sampled under weights {sorted(odd)}, not {self._label(self._number)!r}")
        return tuple(numbers[label] for label in labels)

    def _completion(self, written: Written, since: int, stop: Sequence[int]) -> Completion:
        ids, versions = written.token_ids, self._versions(written.labels, since)
        reason: FinishReason = "stop_token" if ids[-1] in stop else "length"
        if ids[-1] == self._policy.eos_id:
            reason = "stop"
        text = self._policy.decode(ids if reason == "length" else ids[:-1])
        return Completion(ids, written.logprobs, reason, text, versions=versions, server=written.server)

    def _check_room(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
        """Refuse what a server would silently cut short."""
        if sampling.mixing is not None:
            raise InputError(
                "a server cannot mix embeddings", where="rollout.mixing", how="use rollout.engine.kind torch"
            )
        room = min((f.max_model_len for f in self._facts.values() if f.max_model_len is not None), default=None)
        longest = max((len(prompt) for prompt in prompts), default=0) + sampling.max_new_tokens
        if room is not None and longest > room:
            raise InputError(
                f"a prompt and its completion may take {longest} positions, the servers have {room}",
                where="rollout.max_new_tokens",
                how="lower it, or raise rollout.engine.max_model_len",
            )
