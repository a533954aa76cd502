"""Groups of text become one padded batch of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from components.config.objective import GrpoAdvantage
from components.objectives import ADVANTAGES
from components.policy.padding import pad
from components.types import Group


@dataclass(frozen=True)
class Batch:
    """B completions. Prompts are left-padded to a common width P, responses right-padded to R; T = P + R.

    The three log-probability arrays are fp32 nats and never stand in for each other: ``rollout_logp`` is what the
    sampler reported, ``old_logp`` what the learner computed before its first update, ``ref_logp`` the reference's.
    """

    input_ids: Tensor  # [B, T]
    attention_mask: Tensor  # [B, T]
    response_mask: Tensor  # [B, R] bool
    advantages: Tensor  # [B, R]
    rollout_logp: Tensor  # [B, R]
    old_logp: Tensor | None = None  # [B, R]; set by the learner
    ref_logp: Tensor | None = None  # [B, R]
    weights: Tensor | None = None  # [B, R], of every token in the loss; set by the learner

    def __len__(self) -> int:
        return self.input_ids.shape[0]

    @property
    def responses(self) -> int:
        """R, the padded response length."""
        return self.response_mask.shape[1]

    def rows(self, index: Tensor | slice) -> Batch:
        """Some of the rows, at the same padded width."""
        return self._map(lambda _, values: values[index])

    def trimmed(self) -> Batch:
        """The same rows without the columns that are padding in all of them."""
        used = self.attention_mask.any(0).nonzero().squeeze(-1)
        first, last = int(used[0]), int(used[-1]) + 1
        all_columns, responses = slice(first, last), slice(0, last - (self.input_ids.shape[1] - self.responses))
        columns = {"input_ids": all_columns, "attention_mask": all_columns}
        return self._map(lambda name, values: values[:, columns.get(name, responses)])

    def _map(self, change: Callable[[str, Tensor], Tensor]) -> Batch:
        """A batch with every tensor that is set changed."""
        old = {f.name: getattr(self, f.name) for f in fields(self)}
        new: dict[str, Any] = {name: value if value is None else change(name, value) for name, value in old.items()}
        return Batch(**new)

    def micro_batches(self, max_tokens: int) -> Iterator[Batch]:
        """Runs of rows of at most ``max_tokens`` padded tokens each (one row at least), trimmed."""
        size = max(1, max_tokens // self.input_ids.shape[1])
        for start in range(0, len(self), size):
            yield self.rows(slice(start, start + size)).trimmed()


def build_batch(groups: Sequence[Group], advantage: GrpoAdvantage, pad_id: int) -> Batch:
    """Tensors of all completions with their advantages, shortest rows first.

    Unscorable completions keep their row but take no part in the loss: their response mask is empty.
    """
    rows = [(g, c, s) for g in groups for c, s in zip(g.completions, g.scores, strict=True)]
    padded = pad([g.prompt_ids for g, _, _ in rows], [c.token_ids for _, c, _ in rows], pad_id)
    scorable = torch.tensor([score.accuracy is not None for _, _, score in rows])
    response_mask = padded.response_mask & scorable[:, None]
    rollout = torch.zeros(response_mask.shape)
    for row, (_, completion, _) in enumerate(rows):
        rollout[row, : len(completion.logprobs)] = torch.tensor(completion.logprobs)
    per_row = group_advantages(groups, advantage)
    batch = Batch(
        input_ids=padded.input_ids,
        attention_mask=padded.attention_mask,
        response_mask=response_mask,
        advantages=torch.where(response_mask, per_row[:, None], 0.0),
        rollout_logp=rollout,
    )
    # Rows of like length stand together, so that micro-batches can be trimmed to what they hold.
    return batch.rows(padded.attention_mask.sum(1).argsort(stable=True))


def group_advantages(groups: Sequence[Group], settings: GrpoAdvantage) -> Tensor:
    """One advantage per completion, ``[sum of G]``; groups are of equal size."""
    scorable = torch.tensor([[s.accuracy is not None for s in g.scores] for g in groups])
    rewards = torch.tensor([[0.0 if s.accuracy is None else s.reward for s in g.scores] for g in groups])
    return ADVANTAGES[settings.kind](rewards, scorable, settings).flatten()
