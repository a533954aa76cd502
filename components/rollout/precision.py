"""The engine's own copy of the policy, at the precision that ``rollout.engine.precision`` names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from components.policy import Policy
from components.policy.int8 import int8_copy


def bfloat16_copy(policy: Policy) -> Policy:
    """A frozen copy in bfloat16; weights that are loaded later are rounded to it."""
    copy = policy.frozen_copy()
    return replace(copy, model=copy.model.to(torch.bfloat16))


PRECISIONS: dict[str, Callable[[Policy], Policy]] = {
    "policy": Policy.frozen_copy,
    "bfloat16": bfloat16_copy,
    "int8": int8_copy,
    "int4": partial(int8_copy, bits=4),
}
