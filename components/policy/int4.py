"""A copy of the policy whose linear layers have weights of 4 bits (W4A16), for cheap rollouts.

Every 64 inputs of an output channel have a scale and an offset of their own: weight = offset + scale x integer in
[0, 15]. One scale for a whole channel, as 8 bits have it, leaves a real model incoherent: a token's |d logp| has a mean
of 1.3 nats on SmolLM2-135M, against 0.7 with groups of 64. Inputs are not rounded: W4A16 kernels (Marlin, GPTQ) unpack
the weights into the precision of the activations too.

Here they are unpacked once, when they are loaded, so that the copy is an ordinary policy with rounded weights: as
inexact as in an engine that packs them, in the memory and at the speed of the policy's own precision.

A checkpoint that was made from a file of 4-bit weights lies on the grid of that file. Groups of the file's own size
would give it back without an error at first, and round away the small updates of RL after it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from components.policy.lazily import Read
from components.policy.policy import Policy
from components.policy.quantised import quantised_layers

GROUP = 64
LEVELS = 16


def rounded(weight: Tensor) -> Tensor:
    """``weight`` ``[out, in]`` as 4 bits hold it, in its own precision. The last group is shorter where 64 does not
    divide ``in``."""
    outputs, inputs = weight.shape
    padded = functional.pad(weight.float(), (0, -inputs % GROUP), mode="replicate")
    groups = padded.view(outputs, -1, GROUP)
    low, high = groups.aminmax(dim=-1, keepdim=True)
    scale = (high - low) / (LEVELS - 1)
    integers = ((groups - low) / scale.clamp(min=torch.finfo(torch.float32).tiny)).round()
    return (low + scale * integers).view(outputs, -1)[:, :inputs].to(weight.dtype)


def rounded_weights(policy: Policy, weights: Mapping[str, Tensor]) -> Read:
    """``weights`` with those of the policy's linear layers rounded when they are read; embeddings, norms and the output
    head stay."""
    linear = {f"{name}.weight" for name in quantised_layers(policy.model)}
    return Read(weights.keys(), lambda name: rounded(weights[name]) if name in linear else weights[name])


def in_int4(own: Policy) -> Policy:
    """A frozen policy, with the weights of all linear layers but the output head rounded to 4 bits in their place.

    Raises:
        InputError: the model has no such layer, so that nothing would be rounded.
    """
    own.load_weights(rounded_weights(own, own.weights()))
    return own
