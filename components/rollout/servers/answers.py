"""What servers are sent for prompts, and what their answers are as completions."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from components.errors import InputError
from components.policy import Policy
from components.rollout.base import Sampling, ended
from components.rollout.servers.client import Request, Written
from components.rollout.servers.server import Stale
from components.seeds import derive
from components.types import Completion

SEEDS = 2**31 - 2**16
"""Seeds that both dialects take, room for one per completion of a prompt included."""


class Labels:
    """What the weights of each hand-over are called on servers, so that no other run's are taken for them."""

    def __init__(self) -> None:
        self.run = secrets.token_hex(4)

    def of(self, number: int) -> str:
        return f"{self.run}-{number}"

    def numbers(self, labels: Sequence[str], since: int, latest: int) -> tuple[int, ...]:
        """The numbers of the hand-overs behind labels.

        Raises:
            Stale: one of them is from before ``since``, or is not of this run.
        """
        known = {self.of(number): number for number in range(since, latest + 1)}
        if odd := set(labels) - known.keys():
            raise Stale(f"tokens sampled under weights {sorted(odd)}, not {self.of(latest)!r}")
        return tuple(known[label] for label in labels)


def requested(policy: Policy, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Request]:
    """A request for each prompt, with a seed of its own."""
    seeds = [derive(sampling.seed, "prompt", number) % SEEDS for number in range(len(prompts))]
    stop, most = tuple(sorted({policy.eos_id, *sampling.stop})), sampling.max_new_tokens
    return [
        Request(tuple(prompt), sampling.n, most, sampling.temperature, seed, stop)
        for prompt, seed in zip(prompts, seeds, strict=True)
    ]


def completed(policy: Policy, sampling: Sampling, written: Written, versions: tuple[int, ...]) -> Completion:
    """A completion as a server wrote it; ``versions`` are the numbers of the hand-overs behind its tokens."""
    ids = written.token_ids
    reason, text = ended(policy, sampling, ids)
    return Completion(ids, written.logprobs, reason, text, versions=versions, server=written.server)


def check_room(room: int | None, prompts: Sequence[Sequence[int]], sampling: Sampling) -> None:
    """Refuse what servers with ``room`` positions would cut short without an error.

    Raises:
        InputError: see there.
    """
    if sampling.mixing is not None:
        raise InputError("a server cannot mix embeddings", where="rollout.mixing", how="use rollout.engine.kind torch")
    longest = max((len(prompt) for prompt in prompts), default=0) + sampling.max_new_tokens
    if room is not None and longest > room:
        raise InputError(
            f"a prompt and its completion may take {longest} positions, the servers have {room}",
            where="rollout.max_new_tokens",
            how="lower it, or raise rollout.engine.max_model_len",
        )
