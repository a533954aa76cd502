"""Samplers that sample otherwise than they are asked to, or return something else than they sampled."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from components.rollout import Engine, Sampling, torch_engine
from components.rollout.draws import choose
from components.types import Completion
from tests.benchmarks.health.faults.base import AroundEngine
from tests.benchmarks.health.generated.base import Generated
from tests.benchmarks.health.generated.held_back.base import HeldBack
from tests.benchmarks.health.generated.samplers import Groups, Missampled

Prompts = Sequence[Sequence[int]]


class Resampled(HeldBack, Generated):
    """All prompts, or every second one, are answered by a sampler that does it in its own way."""

    part = "sampler"
    scopes = ("all", "replica")

    def engine(self, engine: Engine) -> Engine:
        return _Resampling(engine, self)  # type: ignore[return-value]

    @abstractmethod
    def sampled(self, engine: Engine, prompts: Prompts, sampling: Sampling) -> Groups:
        """What is returned for these prompts."""


class _Resampling(AroundEngine):
    def __init__(self, inner: Engine, fault: Resampled) -> None:
        super().__init__(inner)
        self._fault = fault

    def generate(self, prompts: Prompts, sampling: Sampling) -> Groups:
        fault = self._fault
        if not fault.strength:
            return super().generate(prompts, sampling)
        if fault.form.scope == "all":
            return fault.sampled(self.inner, prompts, sampling)
        groups = super().generate(prompts, sampling)
        places = [place for place in range(len(prompts)) if fault.touches(place)]
        others = fault.sampled(self.inner, [prompts[place] for place in places], sampling)
        for place, group in zip(places, others, strict=True):
            groups[place] = group
        return groups


class Hotter(Resampled):
    """A temperature that is ``size`` times the one that was asked for."""

    sizes = (1.5, 3.0)

    def sampled(self, engine: Engine, prompts: Prompts, sampling: Sampling) -> Groups:
        factor = 1 + (self.size - 1) * self.strength
        return list(engine.generate(prompts, replace(sampling, temperature=sampling.temperature * factor)))


class Colder(Resampled):
    """A temperature that is the one that was asked for, divided by ``size``."""

    sizes = (2.0, 20.0)

    def sampled(self, engine: Engine, prompts: Prompts, sampling: Sampling) -> Groups:
        factor = 1 + (self.size - 1) * self.strength
        return list(engine.generate(prompts, replace(sampling, temperature=sampling.temperature / factor)))


class Filtered(Resampled):
    """Tokens below a share of the likeliest one's probability are never drawn."""

    sizes = (0.1, 0.5, 0.9)

    def sampled(self, engine: Engine, prompts: Prompts, sampling: Sampling) -> Groups:
        share = self.size * self.strength

        def chosen(logits: Tensor, temperature: float, uniform: Tensor) -> tuple[Tensor, Tensor]:
            logits = logits.float()
            shares = (logits - logits.amax(-1, keepdim=True)).div(temperature or 1.0).exp()
            return choose(logits.masked_fill(shares < share, -1e9), temperature, uniform)

        with patch.object(torch_engine, "choose", chosen):
            return list(engine.generate(prompts, sampling))


class ShortContext(Resampled):
    """The beginning of a prompt does not fit, and is left out."""

    sizes = (0.2, 0.5)

    def sampled(self, engine: Engine, prompts: Prompts, sampling: Sampling) -> Groups:
        share = self.size * self.strength
        return list(engine.generate([prompt[int(share * len(prompt)) :] for prompt in prompts], sampling))


class Unstopped(Resampled):
    """A share of the completions cannot end: the end token is never drawn, and they go on to the limit."""

    sizes = (0.3, 1.0)

    def sampled(self, engine: Engine, prompts: Prompts, sampling: Sampling) -> Groups:
        groups = list(engine.generate(prompts, sampling))
        ends = {one.token_ids[-1] for group in groups for one in group if one.finish_reason == "stop"}

        def chosen(logits: Tensor, temperature: float, uniform: Tensor) -> tuple[Tensor, Tensor]:
            return choose(logits.float().index_fill(-1, torch.tensor(sorted(ends)), -1e9), temperature, uniform)

        if not ends:
            return groups
        with patch.object(torch_engine, "choose", chosen):
            endless = engine.generate(prompts, sampling)
        return [
            tuple(
                other if self.hits(self.size, self.clock.step, place, row) else one
                for row, (one, other) in enumerate(zip(*both, strict=True))
            )
            for place, both in enumerate(zip(groups, endless, strict=True))
        ]


class Damaged(HeldBack, Missampled):
    """A share of the completions is damaged on its way back."""

    sizes = (0.3, 1.0)
    _calls = 0

    def missampled(self, group: tuple[Completion, ...]) -> tuple[Completion, ...]:
        self._calls += 1
        return tuple(
            self.damaged(one) if self.hits(self.size, self._calls, row) else one for row, one in enumerate(group)
        )

    @abstractmethod
    def damaged(self, one: Completion) -> Completion:
        """What arrives."""


class LostTail(Damaged):
    """The text lacks its last character, which the decoder still held back; the tokens are whole."""

    def damaged(self, one: Completion) -> Completion:
        return replace(one, text=one.text[:-1])


class ShiftedLogprobs(Damaged):
    """Log-probabilities stand one token late."""

    def damaged(self, one: Completion) -> Completion:
        return replace(one, logprobs=(*one.logprobs[-1:], *one.logprobs[:-1]))


class ForeignIds(Damaged):
    """The tokens that are returned were made from the text again, and are others here and there."""

    def damaged(self, one: Completion) -> Completion:
        ids: list[Any] = list(one.token_ids)
        if len(ids) > 3:
            ids[1], ids[2] = ids[2], ids[1]
        return replace(one, token_ids=tuple(ids))


SAMPLERS = (Hotter, Colder, Filtered, ShortContext, Unstopped, LostTail, ShiftedLogprobs, ForeignIds)
