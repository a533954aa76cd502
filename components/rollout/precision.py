"""The engine's own copy of the policy, at the precision that ``rollout.engine.precision`` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from components.device import computes_in
from components.policy import Policy
from components.policy.int4 import int4_copy, rounded_weights
from components.policy.int8 import int8_copy


class Precision(NamedTuple):
    copy: Callable[[Policy], Policy]
    """The engine's copy of a policy."""
    rounded: Callable[[Policy, Mapping[str, Tensor]], Mapping[str, Tensor]]
    """New weights as they are loaded into the copy, where loading does not round them."""


def bfloat16_copy(policy: Policy) -> Policy:
    """A frozen copy with parameters in bfloat16, to which weights that are loaded later are rounded. Buffers stay as
    they are, as in a checkpoint that is loaded in bfloat16: rounded frequencies would misplace late positions."""
    copy = policy.frozen_copy()
    for parameter in copy.model.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)
    return copy


def unchanged(_policy: Policy, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return weights


def auto_copy(policy: Policy) -> Policy:
    """In bfloat16 on a GPU, in the policy's own precision on a CPU."""
    half = computes_in("auto", policy.model.device) == torch.bfloat16
    return bfloat16_copy(policy) if half else policy.frozen_copy()


PRECISIONS = {
    "auto": Precision(auto_copy, unchanged),
    "policy": Precision(Policy.frozen_copy, unchanged),
    "bfloat16": Precision(bfloat16_copy, unchanged),
    "int8": Precision(int8_copy, unchanged),
    "int4": Precision(int4_copy, rounded_weights),
}
