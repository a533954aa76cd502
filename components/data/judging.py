"""What is found out about every row before the suite looks at it, a part of the rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from components.config.data import ValidationSettings
from components.config.verifiers import Verifier
from components.content_id import normalise
from components.data.candidates import Candidate
from components.data.likeness import key
from components.data.rules import ACCEPTED, Row
from components.data.splits import SPLITS
from components.data.survey import Shared, Survey
from components.data.tokenizing import Reader
from components.rewards import build_verifier
from components.rewards.sandbox import Sandbox
from components.types import Score

CHUNK = 8192
"""Rows in memory at a time."""


def parts(rows: Iterable[Candidate], size: int = CHUNK) -> Iterator[list[Candidate]]:
    """Consecutive rows, ``size`` at a time."""
    waiting = iter(rows)
    while part := list(islice(waiting, size)):
        yield part


def in_form(rows: Iterable[Candidate], verifier: Verifier) -> Iterator[Candidate]:
    """The same rows; a solution that is the answer alone becomes a text that states it where the verifier looks."""
    form = build_verifier(verifier)
    for row in rows:
        prompt = row.prompt
        if prompt.answer and prompt.solution == prompt.answer:
            solution = form.wrap(prompt.answer)
            row = replace(row, prompt=replace(prompt, solution=solution, demonstration=solution))
        yield row


class Judge:
    """Joins the keys of the first pass with what the verifier and the tokenizer say; without a ``sandbox`` there is no
    verifier of texts."""

    def __init__(
        self, found: Survey, counts: Shared, sandbox: Sandbox | None, reader: Reader, limits: ValidationSettings
    ) -> None:
        self._found, self._counts, self._sandbox, self._reader, self._limits = found, counts, sandbox, reader, limits

    def rows(self, candidates: Sequence[Candidate], start: int) -> list[Row] | None:
        """The rows from position ``start`` on; None where they are not those of the first pass."""
        if start + len(candidates) > self._found.rows:
            return None
        verdicts = self._verdicts(candidates)
        lengths = self._lengths(candidates)
        rows = []
        for index, candidate in enumerate(candidates, start):
            if key(normalise(candidate.prompt.text)) != self._found.questions[index]:
                return None
            score = verdicts.get(index - start)
            rows.append(
                Row(
                    candidate,
                    SPLITS[self._found.splits[index]],
                    _verdict(score),
                    scorable=score is None or score.unscorable is None,
                    keys={name: int(keys[index]) for name, keys in self._keys.items()},
                    id_rows=int(self._counts.id_rows[index]),
                    question_rows=int(self._counts.question_rows[index]),
                    alike=int(self._counts.alike[index]),
                    alike_splits=int(self._counts.alike_splits[index]),
                    tokens=lengths[index - start] if lengths else None,
                    forbidden=self._reader.forbidden_in(f"{candidate.prompt.text}\n{candidate.prompt.solution}"),
                )
            )
        return rows

    @property
    def _keys(self) -> dict[str, Sequence[int]]:
        found = self._found
        return {"id": found.ids, "question": found.questions, "twins": found.twins, "item": found.items}  # type: ignore[dict-item]

    def _verdicts(self, candidates: Sequence[Candidate]) -> dict[int, Score]:
        """The run's own verifier about every reference solution: what it refuses, no policy could get right."""
        if self._sandbox is None:
            return {}
        answered = {i: c.prompt for i, c in enumerate(candidates) if c.prompt.answer}
        scores = self._sandbox.judge([(prompt, prompt.solution) for prompt in answered.values()])
        return dict(zip(answered, scores, strict=True))

    def _lengths(self, candidates: Sequence[Candidate]) -> list[tuple[int, int]] | None:
        """Of what is longer than its limit in characters the beginning counts: to encode all of it takes minutes."""
        if not self._reader.tokens:
            return None
        questions = [candidate.prompt.text[: self._limits.max_question_chars] for candidate in candidates]
        solutions = [candidate.prompt.solution[: self._limits.max_solution_chars] for candidate in candidates]
        return list(zip(self._reader.lengths(questions), self._reader.lengths(solutions), strict=True))


def _verdict(score: Score | None) -> str | None:
    if score is None:
        return None
    return score.unscorable or (ACCEPTED if score.accuracy == 1 else f"accuracy {score.accuracy:g}")
