"""Test prompts that occur in the training data: right answers to them may be remembered.

In three ways, the first that holds: ``exact`` (equal but for case, space and Unicode forms), ``near`` (near-duplicates
by the rule of the data stage: the same words but for a few, and the same numbers; MinHash, `components.data.near`),
``overlap`` (most of the word n-grams that are its own in its suite stand in one training row, 2005.14165, 2307.09288).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.config.evaluation import ContaminationSettings
from components.content_id import normalise
from components.data.likeness import key, likeness
from components.data.near import NearDuplicates
from components.evaluation.suites import PromptSuite
from components.files import read_numbered_jsonl

EXAMPLES = 10
WAYS = ("exact", "near", "overlap")


@dataclass(frozen=True, slots=True)
class Trained:
    """One row that was trained on."""

    id: str
    split: str
    text: str
    solution: str


@dataclass(frozen=True, slots=True)
class Match:
    """How a prompt was found, and in which training row."""

    id: str
    how: str
    training_id: str
    split: str


@dataclass(frozen=True, slots=True)
class Found:
    """The prompts of one suite that were found, by id in their order. ``alike``: not only exact matches were sought."""

    suite: PromptSuite
    matches: Mapping[str, Match]
    alike: bool

    @property
    def share(self) -> float:
        return len(self.matches) / len(self.suite.prompts)

    def to_dict(self) -> dict[str, Any]:
        """Counts by way, the share of the prompts that was found, and some examples."""
        matches = list(self.matches.values())
        return {
            "prompts": len(self.suite.prompts),
            **{how: sum(match.how == how for match in matches) for how in WAYS},
            "found": len(matches),
            "share": self.share,
            "near_compared": self.alike,
            "examples": [asdict(match) for match in matches[:EXAMPLES]],
        }


def training_rows(splits: Mapping[str, Path]) -> Iterator[Trained]:
    """Rows of split files by name, one at a time."""
    for split, path in splits.items():
        for _, row in read_numbered_jsonl(path, how="run the data stage again"):
            yield Trained(str(row["id"]), split, str(row["text"]), str(row["solution"]))


def search(
    suites: Sequence[PromptSuite], rows: Iterable[Trained], settings: ContaminationSettings, generated: bool
) -> list[Found]:
    """What was found of every suite. Reads the training rows once, some numbers of each in memory.

    Args:
        generated: whether the training data are made on the spot. Of generated prompts only exact matches count then:
            they are distinct, and alike on purpose (unless ``near_duplicates.check`` is ``all``).
    """
    check = settings.near_duplicates.check
    searches = [
        _Search(suite, settings, alike=check == "all" or not (generated and suite.generated)) for suite in suites
    ]
    for row in rows:
        text = normalise(row.text)
        for one in searches:
            one.look(row, text)
    return [one.found() for one in searches]


@dataclass
class _Search:
    suite: PromptSuite
    settings: ContaminationSettings
    alike: bool
    matches: dict[str, Match] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._exact: dict[str, list[str]] = {}
        owners: dict[int, list[str]] = {}
        for prompt in self.suite.prompts:
            self._exact.setdefault(normalise(prompt.text), []).append(prompt.id)
            for gram in _grams(prompt.text, self.settings.words) if self.alike else ():
                owners.setdefault(gram, []).append(prompt.id)
        self._grams = {gram: ids[0] for gram, ids in owners.items() if len(ids) == 1}
        self._wanted = Counter(self._grams.values())
        self._near = None
        if self.alike and self.settings.near_duplicates.check != "off":
            self._near = _Near(self.settings, self.suite)

    def look(self, row: Trained, text: str) -> None:
        """Compare one training row with every prompt."""
        for prompt in self._exact.get(text, ()):
            self._note(prompt, "exact", row)
        if self._near is not None:
            self._near.add(row)
        if self._grams:
            self._overlaps(row)

    def _overlaps(self, row: Trained) -> None:
        found = _grams(f"{row.text}\n{row.solution}", self.settings.words)
        hits = Counter(self._grams[gram] for gram in found if gram in self._grams)
        for prompt, count in hits.items():
            if count >= self.settings.overlap * self._wanted[prompt]:
                self._note(prompt, "overlap", row)

    def _note(self, prompt: str, how: str, row: Trained) -> None:
        known = self.matches.get(prompt)
        if known is None or WAYS.index(how) < WAYS.index(known.how):
            self.matches[prompt] = Match(prompt, how, row.id, row.split)

    def found(self) -> Found:
        """All matches."""
        if self._near is not None:
            for prompt, row in self._near.pairs():
                self._note(prompt, "near", row)
        ordered = {prompt.id: self.matches[prompt.id] for prompt in self.suite.prompts if prompt.id in self.matches}
        return Found(self.suite, ordered, self.alike)


class _Near:
    """Near-duplicates of the prompts of one suite among the training rows.

    Two questions are near-duplicates when their templates are alike and what the templates mask is equal. Only rows
    that mask what some prompt masks are looked at.
    """

    def __init__(self, settings: ContaminationSettings, suite: PromptSuite) -> None:
        self._near = NearDuplicates(settings.near_duplicates)
        self._numbers: dict[int, int] = {}
        self._prompts = [(prompt.id, *self._parts(prompt.text)) for prompt in suite.prompts]
        self._masked = {masked for _, _, masked in self._prompts}
        self._rows: dict[tuple[int, int], Trained] = {}

    def add(self, row: Trained) -> None:
        masked = key(likeness(row.text).masked)
        if masked in self._masked:
            self._rows.setdefault(self._parts(row.text), Trained(row.id, row.split, "", ""))

    def _parts(self, text: str) -> tuple[int, int]:
        """Number of the template, and key of what it masks."""
        parts = likeness(text)
        template = key("".join(parts.template.split()))
        if template not in self._numbers:
            self._near.add(parts.template)
            self._numbers[template] = len(self._numbers)
        return self._numbers[template], key(parts.masked)

    def pairs(self) -> Iterator[tuple[str, Trained]]:
        """Prompt id and the training row that is like it."""
        groups = self._near.groups()
        rows: dict[tuple[int, int], Trained] = {}
        for (number, masked), row in self._rows.items():
            rows.setdefault((int(groups[number]), masked), row)
        for prompt, number, masked in self._prompts:
            like = rows.get((int(groups[number]), masked))
            if like is not None:
                yield prompt, like


def _grams(text: str, words: int) -> set[int]:
    """Keys of all runs of so many words; none in a shorter text, which says too little to be recognised by."""
    tokens = normalise(text).split()
    return {key(" ".join(tokens[at : at + words])) for at in range(len(tokens) - words + 1)}
