"""Which candidates become prompts, and what happens to the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from components.data.candidates import Candidate
from components.data.likeness import even_answer
from components.data.rules import Row, Rule, code_of
from components.data.validation import Finding
from components.types import Split


@dataclass(frozen=True, slots=True)
class Refused:
    """A row in quarantine, with every reason and its code."""

    candidate: Candidate
    reasons: tuple[str, ...]
    codes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "row": dict(self.candidate.row),
            "line": self.candidate.line,
            "reasons": list(self.reasons),
            "codes": list(self.codes),
        }


class Admission:
    """Divides candidates by what validation found in them, part by part.

    Of rows that share an id or a question, or are near-duplicates, the first that is otherwise sound is admitted.
    Near-duplicates in another split are set aside and not moved there: a row's split is a matter of its own content,
    so that new rows never move old ones.
    """

    def __init__(self) -> None:
        self._taken: dict[str, dict[int, _Earlier]] = {"id": {}, "question": {}, "twins": {}, "item": {}}

    def divide(self, rows: Sequence[Row], findings: Sequence[Finding]) -> Iterator[Row | Refused]:
        """Every row in order, admitted or refused."""
        for index, row in enumerate(rows):
            broken = [(finding.rule, finding.broken[index]) for finding in findings if index in finding.broken]
            refusing = [(rule, value) for rule, value in broken if self._refuses(rule, row)]
            if refusing:
                reasons = tuple(self._reason(rule, value, row) for rule, value in refusing)
                yield Refused(row.candidate, reasons, tuple(code_of(rule, row) for rule, _ in refusing))
                continue
            for rule, _ in broken:
                if rule.shared is not None:
                    answer = even_answer(row.prompt.answer)
                    earlier = _Earlier(row.split, row.keys["question"], answer, place(row.candidate))
                    self._taken[rule.shared].setdefault(row.keys[rule.shared], earlier)
            yield row

    def _refuses(self, rule: Rule, row: Row) -> bool:
        """Whether breaking the rule keeps this row out, or only later ones."""
        if rule.shared is None:
            return True
        earlier = self._taken[rule.shared].get(row.keys[rule.shared])
        if earlier is None:
            return False
        match rule.shared:
            case "item":
                return earlier.split != row.split
            case "twins":  # of one that is equal another rule says so, of one in another split the leak does
                return earlier.split == row.split and earlier.question != row.keys["question"]
        return True

    def _reason(self, rule: Rule, value: Any, row: Row) -> str:
        if rule.shared is None:
            return rule.reason.format(value=value)
        earlier = self._taken[rule.shared][row.keys[rule.shared]]
        other = rule.shared == "question" and earlier.answer != even_answer(row.prompt.answer)
        reason = rule.reason.format(id=row.prompt.id, earlier=earlier.place)
        return f"{reason}, with another answer" if other else reason


class _Earlier(NamedTuple):
    """An admitted row that later ones are like."""

    split: Split
    question: int
    answer: str
    place: str


def place(candidate: Candidate) -> str:
    """The place of a row for a reader; a generated one is named by its id."""
    return f"row {candidate.prompt.id}".strip() if candidate.line is None else f"line {candidate.line}"
