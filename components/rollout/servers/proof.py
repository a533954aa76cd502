"""The proof that a server samples from the present weights: what it makes of a text that the policy wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor

from components.config.servers import CheckSettings
from components.policy import Policy
from components.policy.weights import Scores, Text
from components.rollout.servers.background import in_a_thread
from components.rollout.servers.check import Gap, counted, gap, refuse_gap
from components.rollout.servers.client import Request, ServerClient, Written

TOKENS = 64
"""Of the text: twice what a test for old weights needs, and short, as it is computed after every hand-over."""


class Proof:
    """A text, in parts that servers have room for, and what the present weights make of it.

    The text is what the first server that is prepared samples under the weights that the engine begins with. What every
    server that is prepared then says of its samples is compared with those weights too, at the temperature of the run:
    that is the only time at which the learner is sure to be idle.

    Args:
        scores: by the weights that the engine begins with.
    """

    def __init__(
        self, policy: Policy, settings: CheckSettings, temperature: float, seed: int, scores: Scores | None
    ) -> None:
        self.prompt, self.stop = policy.encode_prompt(settings.prompt), (policy.eos_id,)
        self._request = Request(self.prompt, settings.samples, settings.tokens, temperature, seed, self.stop)
        self._scores, self._one = scores, asyncio.Lock()
        self.texts: tuple[Text, ...] = ()
        self._expected: Tensor | None = None

    async def begin(
        self, name: str, client: ServerClient, room: int | None, allowed: tuple[float, float], timeout: float
    ) -> None:
        """Have a server sample, compare what it says of it, and keep what the first one samples.

        Args:
            room: positions that a text may take; None: any number.
            allowed: mean and largest gap, nats.

        Raises:
            InputError: it samples from something else, or reports something else.
        """
        if self._scores is None:
            return
        written = await client.generate(self._request, timeout)
        sampled = tuple((self.prompt, one.token_ids) for one in written)
        own = await self._scored(sampled, self._request.temperature or 1.0)
        refuse_gap(name, (own - values(written))[counted(sampled)], None, allowed)
        async with self._one:
            if not self.texts:
                ids = tuple(chain.from_iterable(ids for _, ids in sampled))[:TOKENS]
                # A server scores a text by adding one token, for which there must be room.
                most = len(ids) if room is None else max(1, room - len(self.prompt) - 1)
                self.texts = tuple((self.prompt, ids[start : start + most]) for start in range(0, len(ids), most))
                self._expected = await self._scored(self.texts, 1.0)

    async def _scored(self, texts: Sequence[Text], temperature: float) -> Tensor:
        scores = self._scores
        assert scores is not None
        return (await in_a_thread(lambda: scores(texts, temperature))).double()

    def started(self) -> None:
        """The servers are all prepared: from now on the learner may be at work."""
        self._scores = None

    def renew(self, expected: Tensor | None) -> Tensor | None:
        """Expect ``[tokens]`` of other weights from now on; None where that is not known. Returns what was expected."""
        before, self._expected = self._expected, None if expected is None else expected.double()
        return before

    def refuse(self, name: str, said: Sequence[Written], before: Tensor | None, allowed: tuple[float, float]) -> None:
        """Raise unless what a server makes of the text is what the present weights make of it.

        Args:
            before: what the weights before made of it.
            allowed: mean and largest gap, nats.
        """
        if self._expected is not None:
            own = values(said)
            refuse_gap(name, self._expected - own, None if before is None else before - own, allowed)

    def gap(self, said: Sequence[Written]) -> Gap:
        """How far what a server makes of the text is from the present weights; NaN where those are not known."""
        own = values(said)
        return gap((torch.full_like(own, torch.nan) if self._expected is None else self._expected) - own)


def values(written: Sequence[Written]) -> Tensor:
    """The log-probabilities of all tokens, one text after the other, ``[tokens]`` float64."""
    return torch.tensor([value for one in written for value in one.logprobs], dtype=torch.float64)
