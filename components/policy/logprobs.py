"""Log-probabilities and entropies of given tokens under a model."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from components.config.training import LOGITS_AT_ONCE
from components.policy.head import Finish, Head, split_head
from components.policy.lean.model import lean_pass
from components.policy.lean.packing import packed
from components.policy.lean.targets import LEAST
from components.policy.mixing import Mixes, mixed_embeddings
from components.policy.routing import Routing, routed


class TokenStats(NamedTuple):
    """``logp`` and ``entropy``, both ``[B, R]`` fp32 in nats, for the last R positions of the input.

    ``routing`` ``[B, R]`` is the share of layers in which the model itself would have sent the input before a token to
    the recorded experts; NaN where nothing was recorded, None where no routes were given.
    """

    logp: Tensor
    entropy: Tensor
    routing: Tensor | None = None


def position_ids(attention_mask: Tensor) -> Tensor:
    """Positions that start at 0 on the first real token of a left-padded row; ``[B, T]``."""
    return (attention_mask.cumsum(-1) - 1).clamp(min=0)


def response_logprobs(
    model: PreTrainedModel,
    input_ids: Tensor,
    attention_mask: Tensor,
    responses: int,
    temperature: float,
    *,
    mask: Tensor | None = None,
    group: Tensor | None = None,
    entropy_grad: bool = False,
    logits_at_once: int = LOGITS_AT_ONCE,
    at_least: int = 0,
    mixes: Mixes | None = None,
    routing: Routing | None = None,
    lean: bool = True,
) -> TokenStats:
    """Score the last ``responses`` columns of ``input_ids`` ``[B, T]``, at the sampling temperature.

    Logits are turned into log-probabilities in fp32. They exist for ``logits_at_once // V`` tokens at a time and are
    made again in the backward pass. Values and gradients are those of one piece but for rounding, as matrix products of
    other sizes add up in another order: values are about 1e-6 apart in fp32 on a CPU. What fits into one piece is one,
    and so is a model that cannot be cut (see `head`). On CPUs models that are known are computed by the `lean` pass, as
    far apart.

    Args:
        mask: ``[B, R]`` bool, the tokens that are wanted; the others get 0. None wants all.
        group: ``[B]``; rows of one number have the same prompt, which need not be computed for each of them.
        entropy_grad: Whether a gradient flows through the entropy.
        at_least: Make as many pieces as this many tokens would take. Ranks that gather the output layer again for every
            piece wait for each other there, so none may make fewer than another.
        mixes: What was fed on in the place of a token's embedding.
        routing: Experts that the sampler's tokens took, to compare with or to follow.
        lean: Whether the lean pass may be taken. Not where ranks share out gradients as they become ready: a rank that
            takes it and one that does not are ready in another order.
    """
    ids = input_ids[:, input_ids.shape[1] - responses :]
    wanted = None if mask is None else mask.flatten().nonzero().squeeze(-1)
    how = partial(_stats, temperature=temperature, entropy_grad=entropy_grad, logits_at_once=logits_at_once)
    plain = lean and mixes is None and routing is None and not at_least
    taken = lean_pass(model) if plain and wanted is not None and len(wanted) else None
    if taken is not None and mask is not None:
        with torch.autocast("cpu", enabled=False):  # it has its precision, and its own way to compute in it
            hidden, targets = taken.hidden(packed(input_ids, attention_mask, mask, group)), ids[mask]
            if entropy_grad and torch.is_grad_enabled():
                return _placed(how(hidden, targets, taken.logits, taken.vocabulary), wanted, ids)
            return _placed(TokenStats(*taken.scored(hidden, targets, temperature, logits_at_once)), wanted, ids)
    inputs = model_inputs(model, input_ids, attention_mask, mixes)
    with routed(model, routing) as router:
        head = split_head(model, inputs, responses + 1)
        if head is None:
            logits = model(**inputs, logits_to_keep=responses + 1).logits[:, -responses - 1 : -1]
            stats = _kept(distribution_stats(logits, ids, temperature, entropy_grad), mask)
        else:
            stats = _cut(how, head, ids, wanted, at_least)
    return stats if router is None else stats._replace(routing=router.agreement(responses))


def _kept(stats: TokenStats, mask: Tensor | None) -> TokenStats:
    """0 outside the mask."""
    return stats if mask is None else TokenStats(*(v.masked_fill(~mask, 0.0) for v in (stats.logp, stats.entropy)))


def _cut(how: Callable[..., TokenStats], head: Head, ids: Tensor, wanted: Tensor | None, at_least: int) -> TokenStats:
    """Statistics of ``ids [B, R]`` by a model whose output layer is computed in pieces."""
    hidden, flat = head.hidden[:, :-1].flatten(0, 1), ids.flatten()
    if wanted is not None:
        hidden, flat = hidden.index_select(0, wanted), flat.index_select(0, wanted)
    idle = (head.hidden[:1, 0], at_least)
    return _placed(how(hidden, flat, lambda rows: head.logits(rows[None])[0], head.vocabulary, idle), wanted, ids)


@torch.no_grad()
def hidden_and_logprobs(
    model: PreTrainedModel,
    input_ids: Tensor,
    attention_mask: Tensor,
    mask: Tensor,
    logits_at_once: int = LOGITS_AT_ONCE,
) -> tuple[Tensor, Tensor]:
    """Last hidden states ``[B, T, H]``, and log-probabilities ``[B, R]`` of those of the last R tokens in the ``mask``.

    One pass. Logits exist for some tokens at a time, as in `response_logprobs`, unless the model cannot be cut.
    """
    inputs, responses = model_inputs(model, input_ids, attention_mask), mask.shape[1]
    ids, wanted = input_ids[:, input_ids.shape[1] - responses :], mask.flatten().nonzero().squeeze(-1)
    head = split_head(model, inputs, input_ids.shape[1])
    if head is None:
        output = model(**inputs, output_hidden_states=True, logits_to_keep=responses + 1)
        logp = distribution_stats(output.logits[:, -responses - 1 : -1], ids, 1.0).logp
        return output.hidden_states[-1], logp.masked_fill(~mask, 0.0)
    how = partial(_stats, temperature=1.0, entropy_grad=False, logits_at_once=logits_at_once)
    last = head._replace(hidden=head.hidden[:, -responses - 1 :])
    return head.hidden, _cut(how, last, ids, wanted, at_least=0).logp


def model_inputs(
    model: PreTrainedModel, input_ids: Tensor, attention_mask: Tensor, mixes: Mixes | None = None
) -> dict[str, Any]:
    """What a forward pass without a cache is called with."""
    shared = {"attention_mask": attention_mask, "position_ids": position_ids(attention_mask), "use_cache": False}
    if mixes is None:
        return {"input_ids": input_ids, **shared}
    return {"inputs_embeds": mixed_embeddings(model.get_input_embeddings(), input_ids, *mixes), **shared}


def _stats(
    hidden: Tensor,
    targets: Tensor,
    logits: Finish,
    vocabulary: int,
    idle: tuple[Tensor, int] | None = None,
    *,
    temperature: float,
    entropy_grad: bool,
    logits_at_once: int,
) -> TokenStats:
    """Statistics of ``targets [N]``, piece by piece, from hidden states ``[N, H]`` of the positions before them.

    ``idle`` is a hidden state ``[1, H]`` to make pieces of, and how many tokens' worth of them there must be at least.
    """

    def score(rows: Tensor, targets: Tensor, known: list[Tensor]) -> TokenStats:
        return distribution_stats(logits(rows), targets, temperature, entropy_grad, known)

    size = max(1, logits_at_once // vocabulary)
    pieces = list(zip(torch.split(hidden, size), torch.split(targets, size), strict=True))
    if idle is not None and idle[1]:
        # What is added is cut off again below: its gradient is exactly 0, and it passes the hooks of the output layer
        # forwards and backwards, as no piece without a row would.
        row, at_least = idle
        pieces = [piece for piece in pieces if len(piece[1])]
        pieces += [(row, targets.new_zeros(1))] * (math.ceil(at_least / size) - len(pieces))
    if len(pieces) == 1:
        parts = [score(*pieces[0], [])]
    else:
        parts = [checkpoint(score, *piece, [], use_reentrant=False, preserve_rng_state=False) for piece in pieces]
    values = ([p.logp for p in parts], [p.entropy for p in parts])
    return TokenStats(*(torch.cat(found)[: len(targets)] for found in values))


def _placed(stats: TokenStats, wanted: Tensor | None, ids: Tensor) -> TokenStats:
    """Statistics of the ``wanted`` places of ``ids [B, R]`` where they belong, 0 elsewhere."""
    logp, entropy = stats.logp, stats.entropy
    if wanted is not None:
        logp, entropy = (v.new_zeros(ids.numel()).index_copy(0, wanted, v) for v in (logp, entropy))
    return TokenStats(logp.view(ids.shape), entropy.view(ids.shape))


def distribution_stats(
    logits: Tensor, ids: Tensor, temperature: float, entropy_grad: bool = False, known: list[Tensor] | None = None
) -> TokenStats:
    """Statistics of ``ids [...]`` under ``logits [..., V]``.

    ``known`` is an empty list that is filled by the first call. A second call with the same logits and the same list
    takes the values from there: what checkpointing computes again is the logits alone.
    """
    if not (entropy_grad and torch.is_grad_enabled()):
        return TokenStats(*_Statistics.apply(logits, ids, temperature, known))  # type: ignore[no-untyped-call]
    distribution = torch.log_softmax(_tempered(logits, temperature), dim=-1)
    logp = distribution.gather(-1, ids[..., None]).squeeze(-1)
    return TokenStats(logp, -(distribution.exp() * distribution.clamp(min=LEAST)).sum(-1))


class _Statistics(torch.autograd.Function):
    """Log-probability, with a gradient, and entropy, without one."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, ids: Tensor, temperature: float, known: list[Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        found = known or (_on_gpu if logits.is_cuda else _in_place)(_tempered(logits, temperature), ids)
        if known is not None and not known:
            known.extend(found)
        logp, entropy, normaliser = found
        ctx.save_for_backward(logits, ids, normaliser)
        ctx.temperature = temperature
        logp, entropy = logp.clone(), entropy.clone()  # outputs belong to one graph, and ``known`` serves two
        ctx.mark_non_differentiable(entropy)
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None, None]:
        logits, ids, normaliser = ctx.saved_tensors
        slope = (gradients[0] / ctx.temperature)[..., None]
        found = _tempered(logits, ctx.temperature).sub(normaliser).exp_().mul_(-slope)
        return found.scatter_add_(-1, ids[..., None], slope).to(logits.dtype), None, None, None


Found = tuple[Tensor, Tensor, Tensor]
"""Log-probabilities and entropies ``[...]``, and the logarithm of the sum of all exponentials ``[..., 1]``."""


def _in_place(tempered: Tensor, ids: Tensor) -> Found:
    """Two arrays of the size of the logits at a time where a chain of operations would have five."""
    largest = tempered.amax(-1, keepdim=True)
    below = tempered - largest
    chosen = below.gather(-1, ids[..., None]).squeeze(-1)
    weights = below.exp()
    total = weights.sum(-1)
    normaliser = total.log()
    spread = weights.mul_(below.clamp_(min=LEAST)).sum(-1) / total
    return chosen - normaliser, normaliser - spread, largest + normaliser[..., None]


def _on_gpu(tempered: Tensor, ids: Tensor) -> Found:
    """The same with a quarter less memory traffic, which is what takes a GPU's time."""
    largest, place = tempered.max(-1, keepdim=True)
    logp = tempered.log_softmax(-1)
    chosen = logp.gather(-1, ids[..., None]).squeeze(-1)
    normaliser = largest - logp.gather(-1, place)  # of the largest logit: that of the token may be -inf
    entropy = torch.special.entr(logp.exp_()).sum(-1)
    return chosen, entropy, normaliser


def _tempered(logits: Tensor, temperature: float) -> Tensor:
    return logits.float() if temperature == 1 else logits.float() / temperature
