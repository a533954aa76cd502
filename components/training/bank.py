"""What RREDCoT scores with the policy for one group: which rests of which completions, after which prefixes.

The bank of a completion are others of its group, with their raw accuracies. Each is cut where the prefix ends, in
proportion to the steps, and its rest is to be scored as a continuation of the prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from components.config.advantages import RredcotRedistribution
from components.objectives.advantages.segments import merge, natural_ends
from components.types import Completion, Group, Score

Ids = tuple[int, ...]
Row = tuple[Ids, Ids]
"""A context and its continuation, of one token at least."""


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
