"""Weights on their way from whoever has them to whoever computes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from components.device import autocast, computes_in
from components.policy.lazily import Lazily
from components.policy.logprobs import response_logprobs
from components.policy.padding import pad, same_prompts
from components.policy.policy import Apart, Policy

Text = tuple[tuple[int, ...], tuple[int, ...]]
"""Token ids of a context and of what follows it."""
Scores = Callable[[Sequence[Text], float], Tensor]
"""Log-probabilities of the tokens that follow, at a temperature, one text after the other: ``[tokens]`` fp32 nats."""


class Superseded(RuntimeError):
    """The weights that were to be read are no more: the learner has made an update since."""


class Weights(Lazily):
    """Weights of a policy by name, each read when it is used, an adapter merged.

    Args:
        scores: the log-probabilities that they give to a text: an engine elsewhere is compared with those. None: no
            process computes with these weights.
        dtype: what ``scores`` computes in.
        apart: the same weights with the adapter not merged; None: there is none.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], scores: Scores | None, dtype: torch.dtype, apart: Apart | None = None
    ) -> None:
        self.tensors, self.scores, self.dtype, self.apart = tensors, scores, dtype, apart
        self.names = tensors.keys()

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]


def text_logprobs(policy: Policy, texts: Sequence[Text], temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities ``[B, R]`` (nats) of what follows each context, 0 elsewhere, and which they are, bool."""
    contexts = [context for context, _ in texts]
    padded = pad(contexts, [ids for _, ids in texts], policy.pad_id)
    (ids, seen, mask), group = padded.to(policy.model.device), same_prompts(contexts)
    stats = response_logprobs(policy.model, ids, seen, mask.shape[1], temperature, mask=mask, group=group)
    return stats.logp, mask


def weights_of(policy: Policy) -> Weights:
    """The weights of a policy in this process, which computes what they make of a text."""

    @torch.no_grad()
    def scores(texts: Sequence[Text], temperature: float) -> Tensor:
        with autocast(policy.model):
            logp, mask = text_logprobs(policy, texts, temperature)
        return logp[mask].cpu()

    return Weights(policy.weights(), scores, computes_in("auto", policy.model.device), policy.apart())
