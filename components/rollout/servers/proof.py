"""The proof that a server samples from the present weights: what it makes of texts that the policy wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import torch
from torch import Tensor

from components.config.servers import CheckSettings
from components.policy import Policy
from components.policy.weights import Scores, Text
from components.rollout.servers.background import in_a_thread
from components.rollout.servers.check import Gap, counted, gap, refuse_gap
from components.rollout.servers.client import Request, ServerClient, Written


class Proof:
    """Texts, and the log-probabilities that the present weights give to their tokens.

    The texts are written once, by the first server that is prepared, under the weights that the engine begins with.
    What every server that is prepared then says of what it samples is compared with those weights too, at the
    temperature of the run: that is the only time at which the learner is sure to be idle.

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
        self._counted = torch.zeros(0, dtype=torch.bool)
        self._expected: Tensor | None = None

    async def begin(self, name: str, client: ServerClient, allowed: tuple[float, float], timeout: float) -> None:
        """Have a server write, compare what it says of it, and keep the texts of the first one.

        Raises:
            InputError: it samples from something else, or reports something else.
        """
        if self._scores is None:
            return
        written = await client.generate(self._request, timeout)
        sampled = tuple((self.prompt, one.token_ids) for one in written)
        own = await in_a_thread(lambda: self._scored(sampled, self._request.temperature or 1.0))
        refuse_gap(name, (own - values(written))[counted(sampled)], None, allowed)
        async with self._one:
            if not self.texts:
                # A server scores a text by adding one token, for which there must be room.
                self.texts = tuple((self.prompt, ids[:-1] or ids) for _, ids in sampled)
                self._counted = counted(self.texts)
                self._expected = (await in_a_thread(lambda: self._scored(self.texts, 1.0))).double()

    def _scored(self, texts: Sequence[Text], temperature: float) -> Tensor:
        assert self._scores is not None
        return self._scores(texts, temperature).double()

    def started(self) -> None:
        """The servers are all prepared: from now on the learner may be at work."""
        self._scores = None

    def renew(self, expected: Tensor | None) -> Tensor | None:
        """Expect ``[tokens]`` of other weights from now on; None where that is not known. Returns what was expected."""
        before, self._expected = self._expected, None if expected is None else expected.double()
        return before

    def refuse(self, name: str, told: Sequence[Written], before: Tensor | None, allowed: tuple[float, float]) -> None:
        """Raise unless what a server makes of the texts is what the present weights make of them.

        Args:
            before: what the weights before made of them.
            allowed: mean and largest gap, nats.
        """
        if self._expected is None:
            return
        new = (self._expected - values(told))[self._counted]
        refuse_gap(name, new, None if before is None else (before - values(told))[self._counted], allowed)

    def gap(self, told: Sequence[Written]) -> Gap:
        """How far what a server makes of the texts is from the present weights; NaN where those are not known."""
        expected = torch.full_like(values(told), torch.nan) if self._expected is None else self._expected
        return gap((expected - values(told))[self._counted])


def values(written: Sequence[Written]) -> Tensor:
    """The log-probabilities of all tokens, one text after the other, ``[tokens]`` float64."""
    return torch.tensor([value for one in written for value in one.logprobs], dtype=torch.float64)
