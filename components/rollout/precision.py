"""The engine's own copy of the policy, at the precision that ``rollout.engine.precision`` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from components.device import computes_in
from components.policy import Policy
from components.policy.int4 import in_int4, rounded_weights
from components.policy.int8 import in_int8


class Precision(NamedTuple):
    put: Callable[[Policy], Policy]
    """Puts a frozen policy, which is the engine's alone, at this precision."""
    rounded: Callable[[Policy, Mapping[str, Tensor]], Mapping[str, Tensor]]
    """New weights as they are loaded into it, where loading does not round them."""


def in_bfloat16(own: Policy) -> Policy:
    """With parameters in bfloat16, to which weights that are loaded later are rounded. Buffers stay as they are, as in
    a checkpoint that is loaded in bfloat16: rounded frequencies would misplace late positions."""
    kept = [(module, dict(module._buffers)) for module in own.model.modules()]
    own.model.to(torch.bfloat16)
    for module, buffers in kept:
        module._buffers.update(buffers)
    return own


def as_it_is(own: Policy) -> Policy:
    return own


def unchanged(_policy: Policy, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return weights


def auto(own: Policy) -> Policy:
    """In bfloat16 on a GPU, in the policy's own precision on a CPU."""
    half = computes_in("auto", own.model.device) == torch.bfloat16
    return in_bfloat16(own) if half else own


PRECISIONS = {
    "auto": Precision(auto, unchanged),
    "policy": Precision(as_it_is, unchanged),
    "bfloat16": Precision(in_bfloat16, unchanged),
    "int8": Precision(in_int8, unchanged),
    "int4": Precision(in_int4, rounded_weights),
}
