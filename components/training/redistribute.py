"""RREDCoT in the loop: from one advantage per completion to one per token (2606.06475, our reading).

A rest of another completion (`bank`) weighs p(rest | the prefix) / p(rest | its own prefix); what stands below is what
the sampler reported. The weighted mean of their accuracies is the value of the prefix.

Cost: at most completions x (segments - 1) x bank rows of one forward pass, none longer than the longest completion of
the batch with its prompt. Completions without an advantage and rows that repeat cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from components.config.advantages import RredcotRedistribution
from components.objectives.advantages.redistribution import segment_weights, telescope, value
from components.training.bank import Ids, Plan, Row, plans
from components.types import Group

Scorer = Callable[[Sequence[Row]], Tensor]
"""Rows -> log p(continuation | context) of each, ``[rows]`` nats."""
ROWS_AT_ONCE = 1024
"""Groups are scored together while their rows cannot be more than this, to bound the memory."""


class Redistribution(NamedTuple):
    """What multiplies the advantage of every token, ``[N, G, R]`` fp32, mean 1 over a completion; and figures."""

    factors: Tensor
    metrics: dict[str, float]


def redistribute(
    groups: Sequence[Group],
    advantages: Tensor,
    score: Scorer,
    decode: Callable[[Ids], str],
    settings: RredcotRedistribution,
) -> Redistribution:
    """Factors for every token of the batch; exactly 1 for completions that nothing can be learned about.

    Args:
        groups: N groups of up to G completions.
        advantages: of each completion, ``[N, G]``; only the signs matter.
        score: under the current policy, at the sampling temperature; called with distinct rows, the shortest first.
        decode: token ids to text.
        settings: strength, size of the bank, segments, separators.
    """
    width = max((len(c.token_ids) for group in groups for c in group.completions), default=0)
    factors = torch.ones(*advantages.shape, width)
    text = cache(decode)
    most = advantages.shape[1] * (settings.segments - 1) * settings.bank  # rows of one group
    at_once = max(1, ROWS_AT_ONCE // max(1, most))
    scored = moved = 0
    for start in range(0, len(groups), at_once):
        wanted = {
            (n, g): plan
            for n, group in enumerate(groups[start : start + at_once], start)
            for g, plan in plans(group, (advantages[n] != 0).tolist(), text, width, settings).items()
        }
        needed = dict.fromkeys(query.row for plan in wanted.values() for state in plan.states for query in state)
        rows = sorted(needed, key=lambda row: len(row[0]) + len(row[1]))  # like lengths together, to be padded less
        known = dict(zip(rows, score(rows).tolist(), strict=True)) if rows else {}
        for (n, g), plan in wanted.items():
            found = token_weights(plan, known, advantages[n, g].item(), settings.strength)
            factors[n, g, : len(found)] = found.float()
        scored, moved = scored + len(rows), moved + len(wanted)
    share = moved / max(1, int((advantages != 0).sum()))
    return Redistribution(factors, {"redistribution_rows": float(scored), "redistributed_share": share})


def token_weights(plan: Plan, known: Mapping[Row, float], advantage: float, strength: float) -> Tensor:
    """One factor per token of a completion. The prompt's value is the bank's mean, the last one the outcome."""
    utility = torch.tensor([other.accuracy for other in plan.bank], dtype=torch.float64)
    ratios = [[known[query.row] - query.own for query in state] for state in plan.states]
    log_weights, outcome = (torch.tensor(x, dtype=torch.float64) for x in (ratios, [plan.cut.accuracy]))
    credit = telescope(torch.cat([utility.mean()[None], value(log_weights, utility), outcome]))
    ends = torch.tensor([0, *plan.cut.ends])
    written = torch.tensor([0, *plan.cut.sampled]).cumsum(0)[ends].diff()
    return segment_weights(credit, written, advantage, strength).repeat_interleave(ends.diff())
