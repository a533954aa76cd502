"""What an optimizer does to a sample of the weights: nothing between its updates, and in one no more than it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

PER_TENSOR = 64
"""Elements of each tensor that are looked at, evenly spread."""


class Steadiness:
    """Looks at the same elements before and after every update; costs a millisecond, not a copy of the model.

    Since they were last read, ``moved`` is how many tensors were not as the update before had left them, ``largest``
    the largest change of an element in an update, as a multiple of its learning rate, and ``still`` how many tensors
    an update did not change, at most, of those that had a gradient there and a rate that their rounding can show.
    """

    def __init__(self, parameters: Mapping[str, Tensor], weight_decay: float = 0.0) -> None:
        self._parameters, self._decay = list(parameters.values()), weight_decay
        self._places = [spread(p.numel()) for p in self._parameters]
        self._rounding = [torch.finfo(p.dtype).eps for p in self._parameters]
        self._pulled = [False] * len(self._parameters)
        self._left: list[Tensor] | None = None  # by the update before
        self.moved, self.largest, self.still = 0, 0.0, 0

    def before(self, lr: float) -> list[Tensor]:
        """Compare with what the update before left; returns the elements as they are now."""
        now = self._elements()
        self._pulled = [self._is_pulled(*one, lr) for one in zip(self._parameters, self._places, now, strict=True)]
        old = now if self._left is None else self._left
        self.moved += sum(not torch.equal(one, other) for one, other in zip(now, old, strict=True))
        return now

    def after(self, before: Sequence[Tensor], lr: float) -> None:
        """Measure the update that was made since ``before``; weight decay and rounding are no part of it."""
        now, kept = self._elements(), 1 - lr * self._decay
        changes = [
            ((one - kept * other).abs() - eps * other.abs()).max().item()
            for one, other, eps in zip(now, before, self._rounding, strict=True)
        ]
        self.largest = max(self.largest, max(changes) / lr if lr else 0.0)
        same = (torch.equal(one, other) for one, other in zip(now, before, strict=True))
        self.still = max(self.still, sum(kept and pulled for kept, pulled in zip(same, self._pulled, strict=True)))
        self._left = now

    def kept(self, before: list[Tensor]) -> None:
        """No update was made."""
        self._left = before

    def read(self) -> tuple[int, float, int]:
        """``moved``, ``largest`` and ``still``, which begin again."""
        found = self.moved, self.largest, self.still
        self.moved, self.largest, self.still = 0, 0.0, 0
        return found

    def forget(self) -> None:
        """The weights have been loaded."""
        self._left = None

    def _is_pulled(self, parameter: Tensor, places: Tensor, now: Tensor, lr: float) -> bool:
        """Whether an update must show: an element has a gradient, and a tenth of the rate is no rounding error."""
        if parameter.grad is None:
            return False
        gradient = parameter.grad.detach().reshape(-1)[places.to(parameter.device)].cpu()
        shown = 0.1 * lr > torch.finfo(parameter.dtype).eps * now.abs()
        return bool((shown & (gradient != 0)).any())

    def _elements(self) -> list[Tensor]:
        with torch.no_grad():
            pairs = zip(self._parameters, self._places, strict=True)
            return [p.detach().reshape(-1)[places.to(p.device)].float().cpu() for p, places in pairs]


def spread(size: int) -> Tensor:
    """Places of at most `PER_TENSOR` elements, from the first to the last; in whole numbers, as fp32 cannot
    count the elements of a large tensor."""
    count = min(PER_TENSOR, size)
    return torch.arange(count) * (size - 1) // max(1, count - 1)
