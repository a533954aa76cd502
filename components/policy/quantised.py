"""Copies of the policy whose linear layers are quantised, for cheap rollouts.

Embeddings, norms, experts that are held as one tensor, and the output head stay as they are: an error in the head goes
straight into the log-probabilities, and a tied head is the input embedding too.

With 8 bits the layers compute in integers (W8A8). Weights have one scale per output channel, set when they are loaded;
inputs have one per token, set as they come. Both are symmetric: value = scale x integer in [-127, 127]. The product of
the integers is exact, in int32. A model as small as the demo's decodes no faster for it on a CPU: rounding the inputs
costs what the product saves.

With 4 bits only weights are rounded (W4A16). Every 64 inputs of an output channel have a scale and an offset of their
own: weight = offset + scale x integer in [0, 15]. One scale for a whole channel, as 8 bits have it, leaves a real model
incoherent: a token's |d logp| has a mean of 1.3 nats on SmolLM2-135M, against 0.7 with groups of 64. Inputs are not
rounded: W4A16 kernels (Marlin, GPTQ) unpack the weights into the precision of the activations too. Here they are
unpacked once, when they are loaded, so that the copy is an ordinary policy with rounded weights: as inexact as in an
engine that packs them, in the memory and at the speed of the policy's own precision.

A checkpoint that was made from a file of 4-bit weights lies on the grid of that file. Groups of the file's own size
would give it back without an error at first, and round away the small updates of RL after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from components.errors import InputError
from components.policy.lazily import Read
from components.policy.policy import Policy, check_names

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


def quantised_layers(model: PreTrainedModel) -> dict[str, nn.Linear]:
    """`linear_layers`, all of which are rounded.

    Raises:
        InputError: there is none.
    """
    linear = linear_layers(model)
    if not linear:
        raise InputError(
            f"{type(model).__name__} has no linear layer that could be quantised",
            where="rollout.engine.precision",
            how="use precision policy or bfloat16",
        )
    return linear


def linear_layers(model: PreTrainedModel) -> dict[str, nn.Linear]:
    """Linear layers by name, without the output head."""
    head = model.get_output_embeddings()
    return {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear) and m is not head}


def quantise(values: Tensor) -> tuple[Tensor, Tensor]:
    """Rows ``[N, K]`` as int8 of the same shape and an fp32 scale ``[N, 1]`` each: values = scale x integers."""
    values = values.float()
    scale = values.abs().amax(dim=1, keepdim=True) / 127
    integers = (values / scale.clamp(min=torch.finfo(torch.float32).tiny)).round()
    return integers.to(torch.int8), scale


class Int8Linear(nn.Module):
    """A linear layer with weights ``[out, in]`` of 8 bits. Its output has the precision of its input."""

    integers: Tensor
    scale: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.bias = linear.bias
        integers, scale = quantise(linear.weight.detach())
        self.register_buffer("integers", integers)
        self.register_buffer("scale", scale)

    def load(self, weight: Tensor) -> None:
        """Quantise ``weight`` into the place of the present one."""
        if weight.shape != self.integers.shape:
            raise ValueError(f"a weight of shape {tuple(weight.shape)} is not {tuple(self.integers.shape)}")
        self.integers, self.scale = quantise(weight)

    def dequantised(self) -> Tensor:
        """The weights that it computes with, fp32."""
        return self.scale * self.integers

    def forward(self, inputs: Tensor) -> Tensor:
        """``[..., in]`` to ``[..., out]``."""
        integers, scale = quantise(inputs.flatten(0, -2))
        outputs = torch._int_mm(integers, self.integers.T) * scale * self.scale.T
        if self.bias is not None:
            outputs = outputs + self.bias
        return outputs.to(inputs.dtype).reshape(*inputs.shape[:-1], len(self.integers))


class Int8Policy(Policy):
    """A policy with `Int8Linear` layers. It goes by the names of the weights from before they were quantised."""

    def weights(self) -> dict[str, Tensor]:
        """Weights by name as it computes with them: those of quantised layers have been rounded."""
        return super().weights() | {f"{name}.weight": layer.dequantised() for name, layer in self._layers().items()}

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Quantise ``weights`` again; a missing or unknown name is an error, as for every policy."""
        own: dict[str, Callable[[Tensor], object]] = {n: p.copy_ for n, p in self.model.named_parameters()}
        own |= {f"{name}.weight": layer.load for name, layer in self._layers().items()}
        check_names(own, weights)
        with torch.no_grad():
            for name, load in own.items():
                load(weights[name])

    def _layers(self) -> dict[str, Int8Linear]:
        return {name: module for name, module in self.model.named_modules() if isinstance(module, Int8Linear)}


def in_int8(own: Policy) -> Int8Policy:
    """A frozen policy, with all linear layers but the output head quantised in their place.

    Raises:
        InputError: the model has no such layer, so that nothing would be rounded; or it is on a GPU.
    """
    if own.model.device.type != "cpu":
        how = "use precision auto or int4, or a vLLM server with quantised weights"
        raise InputError("int8 computes on CPUs alone", where="rollout.engine.precision", how=how)
    for name, module in quantised_layers(own.model).items():
        parent, _, child = name.rpartition(".")
        setattr(own.model.get_submodule(parent), child, Int8Linear(module))
    return Int8Policy(own.model, own.tokenizer, own.chat, own.instruction)
