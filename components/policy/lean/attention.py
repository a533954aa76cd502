"""Causal attention of packed tokens: prompts to themselves, rows to their prompt and to themselves."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from components.policy.lean.packing import Packed

SHORT = 192
"""Keys up to which attention is computed as plain products: fused kernels only pay for longer ones on a CPU."""
HIDDEN = -1e30
"""Added to the scores of what must not be seen. Finite: an empty seat that sees nothing gives no NaN."""


class Attention:
    """Attention over one packed batch, layer after layer."""

    def __init__(self, batch: Packed, kv_heads: int, scale: float) -> None:
        self._batch, self._kv_heads, self._scale = batch, kv_heads, scale
        prompts, rows = batch.prompts.columns, batch.rows.columns
        of_prompts = hiding(batch.prompt_mask)[:, None, :]
        self._within = of_prompts + causal(prompts)  # [prompts, P, P]
        seen = of_prompts[batch.prompt_of].expand(-1, rows, -1)
        self._behind = torch.cat([seen, causal(rows).expand(len(seen), -1, -1)], dim=2)  # [rows, R, P + R]

    def kept(self, heads: int, head_dim: int) -> int:
        """About how many numbers one layer keeps for the way back: scores, and what goes into them."""
        seats = (self._within, self._behind)
        return sum(len(part) * heads * part.shape[1] * (part.shape[2] + 2 * head_dim) for part in seats)

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Queries ``[N, heads, D]``, keys and values ``[N, kv_heads, D]`` -> ``[N, heads * D]``."""
        batch = self._batch
        first, own = len(batch.prompts.places), len(batch.rows.places)
        sizes = [first, own, len(queries) - first - own]
        (q_prompt, q_own, _), (k_prompt, k_own, _), (v_prompt, v_own, _) = (
            torch.split(part, sizes) for part in (queries, keys, values)
        )
        k_prompt, v_prompt = (batch.prompts.seated(part) for part in (k_prompt, v_prompt))
        prompts = self._attend(batch.prompts.seated(q_prompt), k_prompt, v_prompt, self._within)
        k_own, v_own = (
            torch.cat([prompt.index_select(0, batch.prompt_of), batch.rows.seated(part)], dim=1)
            for prompt, part in ((k_prompt, k_own), (v_prompt, v_own))
        )
        rows = self._attend(batch.rows.seated(q_own), k_own, v_own, self._behind)
        rest = queries.new_zeros(sizes[2], *queries.shape[1:])
        return torch.cat([batch.prompts.gathered(prompts), batch.rows.gathered(rows), rest]).flatten(1)

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor) -> Tensor:
        """``[B, Q, heads, D]`` and ``[B, K, kv_heads, D]`` -> ``[B, Q, heads, D]``."""
        q, k, v = (part.transpose(1, 2) for part in (queries, keys, values))
        if k.shape[2] > SHORT:
            found = functional.scaled_dot_product_attention(
                q, k, v, hidden[:, None], scale=self._scale, enable_gqa=True
            )
            return found.transpose(1, 2)
        # The query heads that share keys are the rows of one product, so that keys are never repeated.
        shape = (len(q), self._kv_heads, -1, *q.shape[2:])
        grouped = (q * self._scale).reshape(shape)  # [B, kv_heads, heads / kv_heads, Q, D]
        scores = torch.matmul(grouped.flatten(2, 3), k.transpose(-1, -2))
        scores = scores.view(*grouped.shape[:-1], -1).add_(hidden[:, None, None])
        found = torch.matmul(scores.softmax(-1).flatten(2, 3), v)
        return found.view(grouped.shape).flatten(1, 2).transpose(1, 2)


def hiding(mask: Tensor) -> Tensor:
    """What is added to scores where ``mask`` is False."""
    return torch.zeros(mask.shape).masked_fill_(~mask, HIDDEN)


def causal(columns: int) -> Tensor:
    """What is added to scores so that no token sees a later one, ``[1, columns, columns]``."""
    return torch.full((columns, columns), HIDDEN).triu_(1)[None]
