"""The engine's own copy of the policy, at the precision that ``rollout.engine.precision`` names."""

from __future__ import annotations

from collections.abc import Callable

import torch

from components.device import computes_in
from components.policy import Policy
from components.policy.int4 import in_int4
from components.policy.int8 import in_int8


def in_bfloat16(own: Policy) -> Policy:
    """With parameters in bfloat16, to which weights that are loaded later are rounded. Buffers stay as they are, as in
    a checkpoint that is loaded in bfloat16: rounded frequencies would misplace late positions."""
    kept = [(module, dict(module._buffers)) for module in own.model.modules()]
    own.model.to(torch.bfloat16)
    for module, buffers in kept:
        module._buffers.update(buffers)
    return own


def auto(own: Policy) -> Policy:
    """In bfloat16 on a GPU, in the policy's own precision on a CPU."""
    half = computes_in("auto", own.model.device) == torch.bfloat16
    return in_bfloat16(own) if half else own


PRECISIONS: dict[str, Callable[[Policy], Policy]] = {
    "auto": auto,
    "policy": lambda own: own,
    "bfloat16": in_bfloat16,
    "int8": in_int8,
    "int4": in_int4,
}
"""What puts a frozen policy, which is the engine's alone, at a precision. Loading new weights into it rounds them, but
for int4 (`rounded_weights`)."""
