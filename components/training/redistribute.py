"""RREDCoT in the loop: from one advantage per completion to one per token (2606.06475, our reading).

The bank of a completion are others of its group, with their raw accuracies. Each is cut where a prefix ends, in
proportion to the steps, and its rest is scored as a continuation of the prefix. It weighs p(rest | the prefix) /
p(rest | its own prefix); what stands below is what the sampler reported. The weighted mean of the accuracies is the
value of the prefix.

Cost: at most completions x (segments - 1) x bank rows of one forward pass, none longer than the longest completion of
the batch with its prompt. Completions without an advantage and rows that repeat cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from components.config.advantages import RredcotRedistribution
from components.objectives.advantages.redistribution import segment_weights, telescope, value
from components.objectives.advantages.segments import merge, natural_ends
from components.types import Completion, Group, Score

Ids = tuple[int, ...]
Row = tuple[Ids, Ids]
"""A context and its continuation, of one token at least."""
Scorer = Callable[[Sequence[Row]], Tensor]
"""Rows -> log p(continuation | context) of each, ``[rows]`` nats."""
ROWS_AT_ONCE = 1024
"""Groups are scored together while their rows cannot be more than this, to bound the memory."""


@dataclass(frozen=True)
class Cut:
    """A scorable completion and where its segments end: in the text (``natural``), and after merging (``ends``)."""

    completion: Completion
    accuracy: float
    natural: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def sampled(self) -> tuple[bool, ...]:
        """Which tokens the policy wrote."""
        return self.completion.sampled or (True,) * len(self.completion.token_ids)


class Query(NamedTuple):
    """A rest that is scored after a prefix, and its log-probability after its own prefix, under the sampler (nats)."""

    row: Row
    own: float


class Plan(NamedTuple):
    """All that is scored for one completion: at each inner end of a segment, one `Query` per member of the bank."""

    cut: Cut
    bank: Sequence[Cut]
    states: Sequence[Sequence[Query]]


def plans(
    group: Group, learns: Sequence[bool], decode: Callable[[Ids], str], width: int, settings: RredcotRedistribution
) -> dict[int, Plan]:
    """Plans by number of the completion, for those that ``learns`` marks and whose bank can distinguish prefixes.

    A bank whose members are all equally good cannot: without a right answer it says 0 of every prefix, and all credit
    would go to the last segment for want of evidence. No row is longer than the prompt and ``width`` tokens.
    """
    cuts = [cut(*pair, decode, settings) for pair in zip(group.completions, group.scores, strict=True)]
    found = {}
    for g, one in enumerate(cuts):
        if one is None or not learns[g] or len(one.ends) < 2:
            continue
        bank = others(g, cuts)[: settings.bank]
        if len({other.accuracy for other in bank}) > 1:
            states = [[_query(group.prompt_ids, one, end, other, width) for other in bank] for end in one.ends[:-1]]
            found[g] = Plan(one, bank, states)
    return found


def cut(
    completion: Completion, score: Score, decode: Callable[[Ids], str], settings: RredcotRedistribution
) -> Cut | None:
    """None for what has no accuracy, no tokens, or inputs that were not tokens (N-GRPO), which no row can repeat."""
    if score.accuracy is None or not completion.token_ids or completion.mixes:
        return None
    texts = {token: decode((token,)) for token in set(completion.token_ids)}
    natural = natural_ends([texts[token] for token in completion.token_ids], settings.separators)
    surprisal = [-logp for logp in completion.logprobs]
    return Cut(completion, score.accuracy, natural, merge(natural, surprisal, settings.segments))


def others(g: int, cuts: Sequence[Cut | None]) -> list[Cut]:
    """The next ones round the group that the policy wrote alone, without the completion itself.

    One with the same text stays: it is another sample, which weighs 1 after every prefix and so gives nothing away.
    """
    after = (cuts[(g + k) % len(cuts)] for k in range(1, len(cuts)))
    return [other for other in after if other and all(other.sampled)]


def _query(prompt: Ids, one: Cut, end: int, other: Cut, width: int) -> Query:
    start = same_place(one.natural.index(end) + 1, len(one.natural), other.natural)
    rest = slice(start, start + width - end)
    ids = other.completion.token_ids[rest]
    return Query((prompt + one.completion.token_ids[:end], ids), sum(other.completion.logprobs[rest]))


def same_place(step: int, steps: int, natural: Sequence[int]) -> int:
    """Where another completion stands after the same share of its steps (a token's index); never at its end."""
    same = min(len(natural) - 1, (2 * step * len(natural) + steps) // (2 * steps))
    return natural[same - 1] if same else 0


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
