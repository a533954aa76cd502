"""Rows of token ids -> rectangular tensors: prompts padded on the left, responses on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Ids = Sequence[int]


class Padded(NamedTuple):
    """``input_ids`` and ``attention_mask`` are ``[B, P + R]``; ``response_mask`` (bool) is ``[B, R]``."""

    input_ids: Tensor
    attention_mask: Tensor
    response_mask: Tensor

    def to(self, device: torch.device) -> Padded:
        return Padded(*(tensor.to(device) for tensor in self))


def pad(prompts: Sequence[Ids], responses: Sequence[Ids], pad_id: int) -> Padded:
    """Pad prompts to a common width P and responses to R. Rows with no response at all give R = 0."""
    width, length = max(map(len, prompts)), max(map(len, responses))
    ids, attention, mask = [], [], []
    for prompt, response in zip(prompts, responses, strict=True):
        left, right = width - len(prompt), length - len(response)
        ids.append([pad_id] * left + list(prompt) + list(response) + [pad_id] * right)
        attention.append([0] * left + [1] * (len(prompt) + len(response)) + [0] * right)
        mask.append([True] * len(response) + [False] * right)
    return Padded(torch.tensor(ids), torch.tensor(attention), torch.tensor(mask, dtype=torch.bool))


def same_prompts(prompts: Sequence[Ids]) -> Tensor:
    """``[B]``: rows of equal prompts have one number. Such rows need their prompt to be computed only once."""
    numbers: dict[tuple[int, ...], int] = {}
    return torch.tensor([numbers.setdefault(tuple(prompt), len(numbers)) for prompt in prompts])
