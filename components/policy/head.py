"""A model's forward pass cut in two: hidden states first, logits of a few tokens at a time later.

Logits are what the model's own output layer makes of hidden states, and some architectures change them once more (Gemma's
soft cap, Cohere's and Granite's scale). Nothing here trusts a list of architectures. In every pass the output layer is
given one column only, and a ramp is put in the place of its logits: what the model then returns shows what it does to
logits. Where that is none of `FINISHES` the pass is refused, and the caller has to take the model's logits whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

RAMP = 1e4
"""The ramp reaches from -RAMP to RAMP, densest around 0: every logit that a float16 model could have."""

FINISHES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "final_logit_softcapping": lambda logits, cap: torch.tanh(logits / cap) * cap,
    "logit_scale": lambda logits, scale: logits * scale,
    "logits_scaling": lambda logits, scale: logits / scale,
    "lm_head_multiplier": lambda logits, scale: logits * scale,
}
"""What a key of the model's configuration may do to logits; believed only where the ramp comes back like that."""

_WHOLE: WeakSet[nn.Module] = WeakSet()
"""Models that were refused, so that they are asked once only."""


class Head(NamedTuple):
    """``hidden [B, columns, H]`` and the function that makes logits ``[1, N, V]`` of some of it ``[1, N, H]``."""

    hidden: Tensor
    logits: Callable[[Tensor], Tensor]
    vocabulary: int


def split_head(model: PreTrainedModel, inputs: Mapping[str, Any], columns: int) -> Head | None:
    """Run ``model`` up to its output layer for the last ``columns``; None where its logits must be taken whole."""
    layer = model.get_output_embeddings()
    if layer is None or model in _WHOLE:
        return None
    with _probed(layer) as probe:
        output = model(**inputs, logits_to_keep=columns)
    if probe.calls == 1 and probe.hidden is not None:
        for finish in _candidates(model.config):
            if _equal(finish(probe.ramp.clone()), output.logits):
                hidden, vocabulary = probe.hidden[:, -columns:], probe.ramp.shape[-1]
                return Head(hidden, lambda rows: finish(layer(rows)), vocabulary)
    _WHOLE.add(model)
    return None


class _Probe:
    """What the output layer was given, and the ramp that was put in the place of what it made of it."""

    def __init__(self) -> None:
        self.calls, self.hidden, self.ramp = 0, None, torch.empty(0)

    def enter(self, _layer: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self.calls += 1
        if len(args) != 1 or not isinstance(args[0], Tensor) or args[0].dim() != 3:
            return None
        self.hidden = args[0]
        return (args[0][:, :1],)

    def leave(self, _layer: nn.Module, _args: object, logits: Tensor) -> Tensor:
        if self.hidden is None:
            return logits
        line = torch.linspace(-1, 1, logits.shape[-1], device=logits.device)
        self.ramp = (RAMP * line.pow(3)).to(logits.dtype).expand(logits.shape)
        return self.ramp.clone()  # the model may write into it


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


def _candidates(config: Any) -> Iterator[Callable[[Tensor], Tensor]]:
    """Nothing at all, then whatever the configuration has a number for."""
    yield lambda logits: logits
    for name, finish in FINISHES.items():
        value = getattr(config, name, None)
        if isinstance(value, (int, float)) and value:
            yield lambda logits, finish=finish, value=value: finish(logits, float(value))


def _equal(expected: Tensor, found: Tensor) -> bool:
    return expected.shape == found.shape and torch.equal(expected.float(), found.float())
