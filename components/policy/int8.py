"""A copy of the policy whose linear layers compute in 8-bit integers (W8A8), for cheap rollouts.

Weights have one scale per output channel, set when they are loaded; inputs have one per token, set as they come. Both
are symmetric: value = scale x integer in [-127, 127]. The product of the integers is exact, in int32.

A model as small as the demo's decodes no faster for it on a CPU: rounding the inputs costs what the product saves.

Embeddings, norms, experts that are held as one tensor, and the output head stay as they are: an error in the head goes
straight into the log-probabilities, and a tied head is the input embedding too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from components.errors import InputError
from components.policy.policy import Policy, check_names
from components.policy.quantised import quantised_layers


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
