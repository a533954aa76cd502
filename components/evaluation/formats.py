"""Readers of sets of problems as they are published, one JSON object a line.

Each takes a row and gives question, final answer, solution, family and difficulty. A row that it cannot read is an
error that names the line: an evaluation that leaves problems out is another evaluation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from components.content_id import content_id
from components.data.candidates import as_text, missing, textual
from components.errors import InputError
from components.files import read_numbered_jsonl
from components.rewards.answers import last_box
from components.tasks import grade_school
from components.types import Prompt

Row = Mapping[str, Any]
LEVEL = re.compile(r"(?:Level )?([0-9]+|\?)")


class Problem(NamedTuple):
    """What a format reads from a row. ``difficulty`` 0 is unknown."""

    text: str
    answer: str
    solution: str
    family: str = ""
    difficulty: float = 0.0
    id: str = ""
    source: str = ""


class Malformed(Exception):
    """Why a row cannot be read, as a sentence."""


def gsm8k(row: Row) -> Problem:
    """GSM8K (2110.14168): ``question``, and ``answer`` whose last line is ``#### 42``."""
    answer, solution = grade_school.read(text_of(row, "answer"))
    if not answer:
        raise Malformed("`answer` does not end with #### and one number")
    return Problem(text_of(row, "question"), answer, solution)


def math(row: Row) -> Problem:
    r"""MATH (2103.03874): ``problem``, ``solution`` with the final ``\boxed{}``, ``level`` ("Level 3", 3 or "Level ?",
    which is 0), and the subject under ``subject`` or ``type``, which is the family."""
    solution = text_of(row, "solution")
    answer = last_box(solution)
    if answer is None or not answer.strip():
        raise Malformed(r"`solution` has no \boxed{} with the final answer")
    level = LEVEL.fullmatch(str(row.get("level", "")).strip())
    if level is None:
        raise Malformed(f'`level` is {row.get("level")!r}; it must be a number, or such as "Level 3"')
    family = text_of(row, "subject" if "subject" in row else "type")
    difficulty = 0.0 if level[1] == "?" else float(level[1])
    return Problem(text_of(row, "problem"), answer.strip(), solution, family, difficulty)


def problem_answer(row: Row) -> Problem:
    """AIME, AMC and the like: ``problem`` and ``answer`` (text or number), the keys in whatever case."""
    lower = {str(name).casefold(): value for name, value in row.items()}
    answer = text_of(lower, "answer")
    solution = lower.get("solution")
    return Problem(text_of(lower, "problem"), answer, solution if isinstance(solution, str) and solution else answer)


def question_answer(row: Row) -> Problem:
    """``question`` and the final ``answer``; optional ``id``, ``solution``, ``family``, ``difficulty``, ``source``."""
    answer, difficulty = text_of(row, "answer"), row.get("difficulty", 0.0)
    if isinstance(difficulty, bool) or not isinstance(difficulty, int | float) or not isfinite(difficulty):
        raise Malformed(f"`difficulty` is {difficulty!r}; it must be a number")
    given = (name for name in ("solution", "family", "id", "source") if row.get(name) not in (None, ""))
    named = {name: text_of(row, name) for name in given}
    solution = named.pop("solution", answer)
    return Problem(text_of(row, "question"), answer, solution, difficulty=float(difficulty), **named)


def prompts(row: Row) -> Problem:
    """A row of a split, as the data stage writes it."""
    try:
        prompt = Prompt(**row)
    except TypeError as error:
        raise Malformed(f"not a prompt: {error}") from error
    return question_answer({**row, "question": prompt.text})


FORMATS: dict[str, Callable[[Row], Problem]] = {
    "gsm8k": gsm8k,
    "math": math,
    "problem_answer": problem_answer,
    "question_answer": question_answer,
    "prompts": prompts,
}


def text_of(row: Row, column: str) -> str:
    """A text, or a number as text (42.0 is 42).

    Raises:
        Malformed: there is no such column, it is empty, or it holds something else.
    """
    if column not in row:
        raise Malformed(f"there is no `{column}`; found: {', '.join(f'`{name}`' for name in row) or 'nothing'}")
    value = row[column]
    if missing(value) or not textual(value):
        raise Malformed(f"`{column}` is no text: {value!a}")
    if not (text := as_text(value)):
        raise Malformed(f"`{column}` is empty")
    return text


def read_problems(path: Path, form: str, name: str) -> list[Prompt]:
    """All problems of a file as prompts of the suite ``name``. A question that stands twice keeps both rows, whose ids
    differ.

    Raises:
        InputError: the file is missing or empty, or a line cannot be read; the line is named.
    """
    found = []
    for number, row in read_numbered_jsonl(path):
        try:
            problem = FORMATS[form](row)
        except Malformed as error:
            how = "fix that line, or name another format; no line is left out"
            raise InputError(f"not a row of format {form}: {error}", where=f"{path}:{number}", how=how) from None
        found.append(
            Prompt(
                id=problem.id or content_id(name, problem.text),
                text=problem.text,
                answer=problem.answer,
                solution=problem.solution,
                task=name,
                source=problem.source or name,
                family=problem.family or name,
                difficulty=problem.difficulty,
            )
        )
    if not found:
        raise InputError("a suite without problems", where=path, how="give JSON lines, one problem each")
    return distinct(found)


def distinct(prompts: list[Prompt]) -> list[Prompt]:
    """The second, third ... prompt of one id gets a number, such that no other has this id."""
    seen, taken = Counter[str](), {prompt.id for prompt in prompts}
    named = []
    for prompt in prompts:
        seen[prompt.id] += 1
        own = prompt.id
        while seen[prompt.id] > 1 and own in taken:
            own = f"{prompt.id}-{seen[prompt.id]}"
            seen[prompt.id] += own in taken
        taken.add(own)
        named.append(replace(prompt, id=own))
    return named
