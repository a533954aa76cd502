"""Which prompts the label audit samples, and which ones share the fate of one whose label it finds suspicious."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from components.data.likeness import even_answer, likeness
from components.data.prompts import nested
from components.types import Prompt

Kind = tuple[str, str]


def kind(prompt: Prompt) -> Kind:
    """Template and answer; a formula, which has no words, is a kind by its whole text."""
    parts = likeness(prompt.text)
    return (parts.nameless if parts.words else parts.normalised), even_answer(prompt.answer)


def to_audit(prompts: Sequence[Prompt], sensitive: Collection[str], count: int, seed: int) -> list[Prompt]:
    """At most ``count`` prompts, in their order: those with ``sensitive`` ids, then the first one of every kind that
    several prompts share, the most frequent kind first; from half of the count on, others drawn by seed.

    So half of what is audited at least stands for all prompts, and serves triage too.
    """
    kinds: dict[Kind, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        kinds[kind(prompt)].append(prompt)
    repeated = sorted((members for members in kinds.values() if len(members) > 1), key=len, reverse=True)
    urgent = [*(prompt for prompt in prompts if prompt.id in sensitive), *(members[0] for members in repeated)]
    first = list({prompt.id: prompt for prompt in urgent})[: (count + 1) // 2]
    rest = nested([prompt for prompt in prompts if prompt.id not in first], count - len(first), seed)
    chosen = {*first, *(prompt.id for prompt in rest)}
    return [prompt for prompt in prompts if prompt.id in chosen]


def of_the_same_kind(prompts: Sequence[Prompt], suspicious: Collection[str]) -> Mapping[str, str]:
    """Id -> id of a suspicious prompt with its template and answer, for prompts that are not themselves suspicious."""
    first: dict[Kind, str] = {}
    for prompt in prompts:
        if prompt.id in suspicious:
            first.setdefault(kind(prompt), prompt.id)
    others = (
        ((prompt.id, first.get(kind(prompt))) for prompt in prompts if prompt.id not in suspicious) if first else ()
    )
    return {name: found for name, found in others if found is not None}
