"""A model's forward pass cut in two: hidden states first, logits of a few tokens at a time later.

Logits are what the model's own output layer makes of hidden states, and some architectures change them once more
(Gemma's soft cap, Cohere's and Granite's scale). No list of architectures is trusted. In every pass the output layer is
given one column only, and a ramp is put in the place of its logits: what the model then returns shows what it does to
logits. Where that is nothing that `FINISHES` knows, the model is refused and its logits have to be taken whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

Finish = Callable[[Tensor], Tensor]

RAMP = 1e4
"""The ramp reaches from -RAMP to RAMP, densest around 0: every logit that a float16 model could have."""

FINISHES: dict[str, Callable[[float, Tensor], Tensor]] = {
    "final_logit_softcapping": lambda cap, logits: torch.tanh(logits / cap) * cap,
    "logit_scale": lambda scale, logits: logits * scale,
    "logits_scaling": lambda scale, logits: logits / scale,
    "lm_head_multiplier": lambda scale, logits: logits * scale,
}
"""What a key of the model's configuration may do to logits; believed only where the ramp comes back like that."""

_WHOLE: WeakSet[nn.Module] = WeakSet()
"""Models that were refused, so that they are tried only once."""


class Head(NamedTuple):
    """``hidden [B, columns, H]`` and the function that makes logits ``[1, N, V]`` of some of it ``[1, N, H]``."""

    hidden: Tensor
    logits: Finish
    vocabulary: int


def split_head(model: PreTrainedModel, inputs: Mapping[str, Any], columns: int) -> Head | None:
    """Run ``model`` up to its output layer for the last ``columns``; None where its logits must be taken whole."""
    layer = model.get_output_embeddings()
    if layer is None or model in _WHOLE:
        return None
    with _probed(layer) as probe:
        output = model(**inputs, logits_to_keep=columns)
    finish = probe.finish(model.config, output.logits)
    if probe.hidden is None or finish is None:
        _WHOLE.add(model)
        return None
    return Head(probe.hidden[:, -columns:], lambda rows: finish(layer(rows)), probe.ramp.shape[-1])


class _Probe:
    """What the output layer was given, and the ramp that was put in the place of what it made of it."""

    def __init__(self) -> None:
        self.calls, self.ramp = 0, torch.empty(0)
        self.hidden: Tensor | None = None

    def enter(self, _layer: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Before the output layer: take its input ``[B, columns, H]``, pass one column on."""
        self.calls += 1
        if len(args) != 1 or not isinstance(args[0], Tensor) or args[0].dim() != 3:
            return None
        self.hidden = args[0]
        return (args[0][:, :1],)

    def leave(self, _layer: nn.Module, _args: object, logits: Tensor) -> Tensor:
        """After it: the ramp instead of its logits."""
        if self.hidden is None:
            return logits
        line = torch.linspace(-1, 1, logits.shape[-1], device=logits.device)
        self.ramp = (RAMP * line.pow(3)).to(logits.dtype).expand(logits.shape)
        return self.ramp.clone()  # the model may write into it

    def finish(self, config: Any, logits: Tensor) -> Finish | None:
        """What made the model's ``logits`` of the ramp; None where that is not known."""
        known = (finish for finish in _finishes(config) if _equal(finish(self.ramp), logits))
        return next(known, None) if self.calls == 1 else None


@contextmanager
def _probed(layer: nn.Module) -> Iterator[_Probe]:
    """A probe around ``layer``: before all of its other hooks, and after them."""
    probe = _Probe()
    hooks = [layer.register_forward_pre_hook(probe.enter, prepend=True), layer.register_forward_hook(probe.leave)]
    try:
        yield probe
    finally:
        for hook in hooks:
            hook.remove()


def _finishes(config: Any) -> Iterator[Finish]:
    """Nothing at all, then whatever the configuration has a number for."""
    yield lambda logits: logits
    for name, finish in FINISHES.items():
        value = getattr(config, name, None)
        if isinstance(value, (int, float)) and value:
            yield partial(finish, float(value))


def _equal(expected: Tensor, found: Tensor) -> bool:
    return expected.shape == found.shape and torch.equal(expected.float(), found.float())
