"""Which completions a reviewer reads side by side: what got worse first and all of it, then better, then the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from components.pages import visible
from components.report.run import dig

UNKNOWN = "not comparable"
QUOTA = {"got worse": 20, UNKNOWN: 5, "got better": 5, "stayed wrong": 4, "stayed right": 2}
"""Outcome -> how many are shown at the most, in this order. What is not shown is counted."""
LONGEST = 6000
"""Characters of one text that the page holds; what is beyond is counted."""
FOLDED = 420
"""Characters, or `FOLDED_LINES`, beyond which a text is folded; it is printed whole."""
FOLDED_LINES = 8
WORDS = re.compile(r"\w+|\s+|[^\w\s]")
MOST_WORDS = 600
"""Texts with more are not compared: the time grows with the square."""


@dataclass(frozen=True)
class Piece:
    """A stretch of one text; ``differs`` where the other text has something else."""

    text: str
    differs: bool


@dataclass(frozen=True)
class Side:
    """One policy's greedy completion. ``accuracy`` None means unscorable."""

    pieces: tuple[Piece, ...]
    accuracy: float | None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True)
class Sample:
    """One held-out prompt with what was said to it before and after."""

    id: str
    outcome: str
    family: str
    prompt: str
    answer: str
    before: Side
    after: Side


def outcome(before: float | None, after: float | None) -> str:
    """A completion counts as right only where the verifier gave it full accuracy; unscorable is neither."""
    if before is None or after is None:
        return UNKNOWN
    was, now = before == 1, after == 1
    if now:
        return "stayed right" if was else "got better"
    return "got worse" if was else "stayed wrong"


def outcome_of(row: Mapping[str, Any]) -> str:
    """The outcome of one line of `samples.jsonl`."""
    return outcome(dig(row, "sft", "accuracy"), dig(row, "trained", "accuracy"))


def read_sample(row: Mapping[str, Any]) -> Sample:
    """One line of `samples.jsonl`, its texts as a reader may see them and compared."""
    before, after = (shown(dig(row, side, "text")) for side in ("sft", "trained"))
    old, new = compared(before, after)
    return Sample(
        id=str(row.get("id") or ""),
        outcome=outcome_of(row),
        family=str(row.get("family") or ""),
        prompt=shown(row.get("prompt")),
        answer=shown(row.get("answer")),
        before=Side(tuple(old), dig(row, "sft", "accuracy")),
        after=Side(tuple(new), dig(row, "trained", "accuracy")),
    )


def shown(text: object) -> str:
    """A text that a model or a data set wrote: nothing in it is hidden or reordered, and it has an end."""
    return visible("" if text is None else text, LONGEST)


def folded(text: str) -> bool:
    """Whether a text takes too much room to be read by everybody."""
    return len(text) > FOLDED or text.count("\n") >= FOLDED_LINES


def tally(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many samples had each outcome."""
    outcomes = [outcome_of(row) for row in rows]
    return {name: outcomes.count(name) for name in QUOTA if name != UNKNOWN or UNKNOWN in outcomes}


def choose(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Sample]]:
    """The samples to show by outcome, in the order of ``QUOTA``: the first by id, families in turn. Never chosen by
    what looks best."""
    pools: dict[str, list[Mapping[str, Any]]] = {name: [] for name in QUOTA}
    for row in sorted(rows, key=lambda row: str(row.get("id"))):
        pools[outcome_of(row)].append(row)
    return {
        name: [read_sample(row) for row in _alternate_families(pool)[: QUOTA[name]]]
        for name, pool in pools.items()
        if pool
    }


def _alternate_families(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One of each family in turn."""
    by_family: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_family.setdefault(str(row.get("family") or ""), []).append(row)
    turns = zip_longest(*(by_family[name] for name in sorted(by_family)))
    return [row for turn in turns for row in turn if row is not None]


def compared(one: str, other: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces. Nothing is marked in texts that are too long, or that have nothing in common."""
    words, others = WORDS.findall(one), WORDS.findall(other)
    if max(len(words), len(others)) > MOST_WORDS:
        return _whole(one), _whole(other)
    blocks = SequenceMatcher(None, words, others, autojunk=False).get_opcodes()
    if not any(kind == "equal" and "".join(words[a:b]).strip() for kind, a, b, _, _ in blocks):
        return _whole(one), _whole(other)
    return (
        list(_pieces(words, ((kind, a, b) for kind, a, b, _, _ in blocks))),
        list(_pieces(others, ((kind, a, b) for kind, _, _, a, b in blocks))),
    )


def _whole(text: str) -> list[Piece]:
    return [Piece(text, False)] if text else []


def _pieces(words: Sequence[str], blocks: Iterator[tuple[str, int, int]]) -> Iterator[Piece]:
    for kind, start, end in blocks:
        if start < end:
            yield Piece("".join(words[start:end]), kind != "equal")
