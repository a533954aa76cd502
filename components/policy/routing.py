"""Mixture of experts: which experts tokens take, and sending them where the sampler sent them (R3, 2510.11370).

Sampler and learner round differently, so now and then a router's choice flips, and one flip moves a log-probability
more than all rounding together. R3 records the sampler's choice and repeats it in the learner. Only the *choice* is
repeated: the weights of the chosen experts still come from the learner's own router, which so keeps its gradient.

Routes are integers ``[..., layers, k]``, one set of k experts per token that was read and per layer that has experts;
-1 means unknown, and such a token goes where its router sends it. A dense model has no routes, and every function here
does nothing to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from components.errors import InputError

Routes = NDArray[np.int16]
UNKNOWN = -1


class Routing(NamedTuple):
    """The sampler's ``routes [B, T, layers, k]``, and whether to follow them or only to compare."""

    routes: Tensor
    replay: bool


def routers(model: PreTrainedModel) -> list[nn.Module]:
    """The modules that choose experts, in the order of their layers; none in a dense model.

    Transformers names them where it records router logits. Theirs return (logits, weights, experts) of every token.
    """
    recorder = (getattr(model, "_can_record_outputs", None) or {}).get("router_logits")
    kind = getattr(recorder, "target_class", None)
    return [] if kind is None else [module for module in model.modules() if isinstance(module, kind)]


class Router:
    """Watches the routers of one model during a forward pass, and steers them on request."""

    def __init__(self, layers: int, routing: Routing | None = None) -> None:
        self._layers, self._routing = layers, routing
        self._chosen: list[Tensor] = []

    def choose(self, layer: int, module: nn.Module, _args: object, output: Any) -> Any:
        """Forward hook of the router of ``layer``: note its choice, and give back the recorded one if it is to rule."""
        logits, weights, experts = output
        self._chosen.append(experts)
        if self._routing is None or not self._routing.replay:
            return output
        wanted = self._routing.routes[:, :, layer].reshape(-1, experts.shape[-1]).to(experts)
        known = (wanted != UNKNOWN).all(-1, keepdim=True)
        followed = torch.where(known, wanted, experts)
        rule = weight_rule(logits, weights, experts, type(module).__name__)
        return logits, rule(logits, followed).to(weights.dtype), followed

    def take(self, rows: int) -> Tensor:
        """What the routers chose in the last pass over ``rows`` rows, ``[rows, columns, layers, k]`` int16."""
        chosen, self._chosen = self._chosen[-self._layers :], []
        return torch.stack([experts.view(rows, -1, experts.shape[-1]) for experts in chosen], 2).to(torch.int16)

    def agreement(self, responses: int) -> Tensor:
        """Share of layers whose own choice is the recorded set, ``[B, responses]``; NaN where no layer is known.

        Column r is about the token *before* response token r: the one whose pass gave its distribution.
        """
        if self._routing is None:
            raise ValueError("there are no routes to compare with")
        routes = self._routing.routes
        own = self.take(len(routes))[:, -responses - 1 : -1]
        return routing_agreement(routes[:, -responses - 1 : -1], own)


def routing_agreement(recorded: Tensor, own: Tensor) -> Tensor:
    """Share of layers whose expert *sets* are equal, ``[...]`` of two ``[..., layers, k]``; NaN where none is known."""
    known = (recorded != UNKNOWN).all(-1)
    equal = (recorded.sort(-1).values == own.to(recorded).sort(-1).values).all(-1)
    return (equal & known).sum(-1) / known.sum(-1)


@contextmanager
def routed(model: PreTrainedModel, routing: Routing | None) -> Iterator[Router | None]:
    """Compare the model's choices with ``routing``, and follow it if it says so; None on a dense model or without."""
    found = [] if routing is None else routers(model)
    if not found or routing is None:
        yield None
        return
    layers = routing.routes.shape[2]
    if layers != len(found):
        raise ValueError(f"routes of {layers} layers do not fit a model with experts in {len(found)}")
    if routing.replay and any(getattr(module, "gradient_checkpointing", False) for module in model.modules()):
        raise ValueError("routes cannot be replayed under gradient checkpointing: its second pass would route freely")
    with _hooked(found, Router(layers, routing)) as router:
        yield router


@contextmanager
def recorded(model: PreTrainedModel, wanted: bool = True) -> Iterator[Router | None]:
    """Watch the model's choices; None on a dense model, or where they are not wanted."""
    found = routers(model) if wanted else []
    if not found:
        yield None
        return
    with _hooked(found, Router(len(found))) as router:
        yield router


@contextmanager
def _hooked(found: Sequence[nn.Module], router: Router) -> Iterator[Router]:
    hooks = [m.register_forward_hook(partial(router.choose, layer)) for layer, m in enumerate(found)]
    try:
        yield router
    finally:
        for hook in hooks:
            hook.remove()


Rule = Callable[[Tensor, Tensor], Tensor]


def share_of_all(logits: Tensor, experts: Tensor) -> Tensor:
    """The chosen experts' share of the softmax over all experts."""
    return torch.softmax(logits.float(), -1).gather(-1, experts)


def share_of_chosen(logits: Tensor, experts: Tensor) -> Tensor:
    """The same, made to add up to 1 over the chosen ones."""
    weights = share_of_all(logits, experts)
    return weights / weights.sum(-1, keepdim=True)


def weight_rule(logits: Tensor, weights: Tensor, experts: Tensor, name: str) -> Rule:
    """How a router weighs experts, found by trying: the rule that gives its ``weights`` for its own choice.

    Raises:
        InputError: no rule does; this router weighs in a way of its own (groups, biases, sigmoids).
    """
    tolerance = max(torch.finfo(weights.dtype).eps, 4 * torch.finfo(torch.float32).eps)
    with torch.no_grad():
        for rule in (share_of_chosen, share_of_all):
            again = rule(logits, experts).to(weights.dtype)
            if again.shape == weights.shape and torch.allclose(again, weights, rtol=0, atol=tolerance):
                return rule
    raise InputError(
        f"routes cannot be replayed in {name}: its weights are not a softmax over experts",
        where="learner.routing_replay",
        how="switch it off; GSPO does without (objective.ratio)",
    )


def joined(earlier: Routes | None, later: Routes | None) -> Routes | None:
    """Routes over several turns: each token's are those of the first time that it was read."""
    if earlier is None or later is None:
        return later
    return np.concatenate([earlier, later[len(earlier) :]])


def pad_routes(routes: Sequence[Routes | None], prompts: Sequence[int], columns: int) -> Tensor | None:
    """Routes of B completions as ``[B, T, layers, k]`` int16, -1 where nothing is known; None where all are None.

    Args:
        routes: Of each completion ``[tokens, layers, k]``: of its prompt, then of the response tokens that were read.
        prompts: Length of each completion's prompt. All end at the same column, the longest begins at the first.
        columns: T.
    """
    known = [r for r in routes if r is not None]
    if not known:
        return None
    padded, width = torch.full((len(routes), columns, *known[0].shape[1:]), UNKNOWN, dtype=torch.int16), max(prompts)
    for row, (own, prompt) in enumerate(zip(routes, prompts, strict=True)):
        if own is not None:
            start = width - prompt
            padded[row, start : start + len(own)] = torch.from_numpy(own)
    return padded
