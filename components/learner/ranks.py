"""The processes that share an update, and who of them scores which rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, distributed

from components.learner.batch import Batch

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process is number ``rank`` of ``size``; they all run the same program. One alone needs no communication."""

    rank: int = 0
    size: int = 1
    control: Any = field(default=None, kw_only=True)
    """Process group of the CPU for the thread that all commands run in; None for one process."""
    writing: Any = field(default=None, kw_only=True)
    """Another one, for the thread that writes checkpoints."""

    def total(self, values: Tensor) -> Tensor:
        """Sum over the ranks, the same bits on every one."""
        return values

    def largest(self, values: Tensor) -> Tensor:
        """Maximum over the ranks, element by element."""
        return values

    def joined(self, values: Tensor) -> Tensor:
        """All ranks' values ``[N]``, one after the other; N may differ."""
        return values

    def of_first(self, read: Callable[[], T]) -> T:
        """What ``read`` returns on rank 0, which alone calls it."""
        return read()


ALONE = Ranks()
"""The one process of a learner without ranks."""


@dataclass(frozen=True)
class Peers(Ranks):
    """Several ranks, connected by ``torch.distributed``; their tensors are put where its backend wants them."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def total(self, values: Tensor) -> Tensor:
        return self._reduced(values, distributed.ReduceOp.SUM)

    def largest(self, values: Tensor) -> Tensor:
        return self._reduced(values, distributed.ReduceOp.MAX)

    def joined(self, values: Tensor) -> Tensor:
        count = torch.zeros(self.size, dtype=torch.long)
        count[self.rank] = len(values)
        counts = self.total(count).tolist()
        whole = values.new_zeros(sum(counts))
        start = sum(counts[: self.rank])
        whole[start : start + len(values)] = values
        return self.total(whole)

    def of_first(self, read: Callable[[], T]) -> T:
        found = [read() if self.rank == 0 else None]
        distributed.broadcast_object_list(found, src=0, device=self.device)
        return found[0]  # type: ignore[return-value]

    def _reduced(self, values: Tensor, how: distributed.ReduceOp.RedOpType) -> Tensor:
        found = values.to(self.device, copy=True)
        distributed.all_reduce(found, how)
        return found.to(values.device)


class Share(NamedTuple):
    """What one rank scores of a batch: its ``rows`` in ``parts``, and ``idle`` passes behind them that count nothing.

    Weights that are spread over ranks are gathered for every pass, so all ranks make the same number of them.
    """

    rows: Tensor
    parts: list[Batch]
    idle: list[Batch]
    still: int = 0
    """How many of the parts, the last ones, have no gradient."""

    def whole(self, parts: Sequence[Tensor], width: int, rows: int, ranks: Ranks) -> Tensor:
        """Values of this rank's parts ``[n, <= width]`` put into ``[rows, width]``, with those of all other ranks."""
        found = torch.zeros(rows, width)
        start = 0
        for part in parts:
            found[self.rows[start : start + len(part)], : part.shape[1]] = part.cpu()
            start += len(part)
        return ranks.total(found)


def share_of(
    batch: Batch, ranks: Ranks, max_tokens: int, with_gradient: Tensor | None = None, packed: bool = False
) -> Share:
    """This rank's share of ``batch`` in micro-batches of at most ``max_tokens`` padded tokens.

    Args:
        packed: The pass computes no padding, and a group's prompt once: whole groups stand together, and
            ``max_tokens`` are those computed. Of a rank that is alone.
        with_gradient: ``[B]`` bool, the rows that have a gradient; the others get parts of their own where there is
            one rank. Several ranks make the same passes, and parts have rows of both kinds.
    """
    if ranks.size == 1:
        every = torch.arange(len(batch))
        own, rest = (every, every[:0]) if with_gradient is None else (every[with_gradient], every[~with_gradient])
        if packed:
            passes = [
                [rows[part] for part in batch.rows(rows).group_passes(max_tokens)] if len(rows) else []
                for rows in (own, rest)
            ]
            ordered = [rows for some in passes for rows in some]
            return Share(torch.cat(ordered), [batch.rows(rows).trimmed() for rows in ordered], [], len(passes[1]))
        learned, scored = (
            list(batch.rows(some).micro_batches(max_tokens)) if len(some) else [] for some in (own, rest)
        )
        return Share(torch.cat([own, rest]), [*learned, *scored], [], len(scored))
    shared = split_rows(batch.attention_mask.sum(1).tolist(), ranks.size)
    shares = [list(batch.rows(some).micro_batches(max_tokens)) if len(some) else [] for some in shared]
    parts = shares[ranks.rank]
    return Share(shared[ranks.rank], parts, [idle_pass(batch)] * (max(map(len, shares)) - len(parts)))


def split_rows(tokens: Sequence[int], ranks: int) -> list[Tensor]:
    """Row numbers of each rank: longest rows first, each to the rank with the fewest tokens so far (Graham's rule).

    No two ranks differ by more than the longest row.
    """
    rows: list[list[int]] = [[] for _ in range(ranks)]
    load = [0] * ranks
    for row in sorted(range(len(tokens)), key=lambda row: -tokens[row]):
        rank = load.index(min(load))
        rows[rank].append(row)
        load[rank] += tokens[row]
    return [torch.tensor(sorted(own), dtype=torch.long) for own in rows]


def idle_pass(batch: Batch) -> Batch:
    """A row of ``batch`` of which no token counts: its gradient is exactly 0."""
    row = batch.rows(slice(0, 1))
    off = torch.zeros_like(row.response_mask)
    return replace(row, response_mask=off, weights=None if row.weights is None else off.float()).trimmed()
