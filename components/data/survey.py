"""The first pass over a source: a few compact numbers per row, never a text.

What rows have in common (an id, a question, a near-duplicate in another split) cannot be seen in a part of them. This
pass leaves for every row 64-bit keys, from which the counts that the validation suite looks at follow.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.config.data import DataSettings, SplitSettings
from components.config.sources import computed
from components.data.candidates import Candidate
from components.data.likeness import even_answer, guessable, key, likeness
from components.data.near import NearDuplicates, joined
from components.data.splits import SPLITS, assign

Keys = NDArray[np.uint64]
Counts = NDArray[np.int64]
KEYS = ("ids", "questions", "templates", "nameless", "masked", "answers", "sources")


@dataclass(frozen=True)
class Survey:
    """Keys of all rows, ``[rows]`` each. 0 is the key of what is missing.

    ``ids`` and ``questions`` are equal for equal ones; ``items`` also for near-duplicates; ``groups`` also for those
    that differ in numbers, quoted texts or names inside sentences (the template); ``answers`` go by the final answer,
    ``sources`` by the origin. ``words`` counts the words of the template, ``splits`` the position in `SPLITS`.
    ``twins`` is equal for near-duplicates whose final answers are equal however they are written.
    """

    ids: Keys
    questions: Keys
    items: Keys
    twins: Keys
    groups: Keys
    answers: Keys
    sources: Keys
    words: NDArray[np.int32]
    splits: NDArray[np.uint8]
    guessable: int
    answered: int

    @property
    def rows(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Shared:
    """What each row shares with others, ``[rows]`` each: rows with its id and its question, distinct questions among
    its near-duplicates with the same answer (itself included), and the splits of its near-duplicates with any answer: a
    question is leaked however its answer is written. Missing things are shared by no one."""

    id_rows: Counts
    question_rows: Counts
    alike: Counts
    alike_splits: Counts


def survey(rows: Iterable[Candidate], data: DataSettings) -> Survey:
    """Read all rows once."""
    chosen = data.validation.near_duplicates
    generated = computed(data.source)
    compared = chosen.check == "all" or (chosen.check == "files" and not generated)
    near = NearDuplicates(chosen) if compared else None
    found = _Columns(data.splits, data.validation.max_question_chars)
    for candidate in rows:
        found.add(candidate, near)
    return found.finish(near)


class _Columns:
    """Growing columns of unsigned numbers."""

    def __init__(self, shares: SplitSettings, longest: int) -> None:
        self._shares, self._longest = shares, longest
        self._keys = {name: array("Q") for name in KEYS}
        self._words, self._splits = array("i"), array("B")
        self._numbers: dict[int, int] = {}
        self._guessable = self._answered = 0

    def add(self, candidate: Candidate, near: NearDuplicates | None) -> None:
        prompt = candidate.prompt
        parts = likeness(prompt.text, self._longest)
        template = key("".join(parts.template.split()))
        if near is not None and template and template not in self._numbers:
            near.add(parts.template)
            self._numbers[template] = len(self._numbers)
        found = (
            key(prompt.id),
            key(parts.normalised),
            template,
            key("".join(parts.nameless.split())),
            key(parts.masked),
            key(even_answer(prompt.answer)),
            key(prompt.source),
        )
        for column, value in zip(self._keys.values(), found, strict=True):
            column.append(value)
        self._words.append(parts.words)
        self._splits.append(SPLITS.index(assign(prompt.text, self._shares)))
        if prompt.answer:
            self._answered += 1
            self._guessable += guessable(prompt.answer)

    def finish(self, near: NearDuplicates | None) -> Survey:
        ids, questions, templates, nameless, masked, answers, sources = map(np.asarray, self._keys.values())
        if near is None or not len(self._numbers):
            groups, items, twins = nameless, questions, questions
        else:
            keys = np.fromiter(self._numbers, np.uint64, len(self._numbers))
            order = np.argsort(keys)
            at = order[np.searchsorted(keys[order], np.where(templates, templates, keys[:1]))]
            alike = near.groups()
            items = np.where(questions, mix(np.where(templates, keys[alike[at]], 0), masked), 0)
            twins = np.where(questions, mix(items, answers), 0)
            groups = np.where(templates, keys[joined(alike, _same(nameless, at))[at]], 0)
        return Survey(
            ids=ids,
            questions=questions,
            items=items,
            twins=twins,
            groups=groups,
            answers=answers,
            sources=sources,
            words=np.asarray(self._words),
            splits=np.asarray(self._splits),
            guessable=self._guessable,
            answered=self._answered,
        )


def _same(nameless: Keys, at: Counts) -> set[tuple[int, int]]:
    """Pairs of templates (``at``: of every row) that are equal but for names."""
    _, first, inverse = np.unique(nameless, return_index=True, return_inverse=True)
    differ = np.flatnonzero(at != at[first[inverse]])
    return set(zip(at[differ].tolist(), at[first[inverse[differ]]].tolist(), strict=True))


def shared(found: Survey) -> Shared:
    """Counts of what rows have in common."""
    return Shared(
        id_rows=rows_with(found.ids),
        question_rows=rows_with(found.questions),
        alike=_distinct_within(found.twins, found.questions),
        alike_splits=_distinct_within(found.items, found.splits.astype(np.uint64)),
    )


def rows_with(keys: Keys) -> Counts:
    """For every row the number of rows with its key; 1 where the key is 0."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.where(keys == 0, 1, counts[inverse])


def _distinct_within(groups: Keys, values: Keys) -> Counts:
    """For every row the number of different values in its group; 1 where the group is 0."""
    if not len(groups):
        return np.zeros(0, np.int64)
    order = np.lexsort((values, groups))
    g, v = groups[order], values[order]
    starts = np.concatenate([[True], g[1:] != g[:-1]])
    new = starts | np.concatenate([[True], v[1:] != v[:-1]])
    number = np.cumsum(starts) - 1
    counts = np.bincount(number, weights=new).astype(np.int64)[number]
    result = np.empty(len(groups), np.int64)
    result[order] = counts
    return np.where(groups == 0, 1, result)


def mix(left: Keys, right: Keys) -> Keys:
    """One key of two."""
    mixed = (left ^ (right * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(31))
