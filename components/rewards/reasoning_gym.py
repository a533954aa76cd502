"""Right when the library reasoning-gym gives the answer full marks."""

from __future__ import annotations

import ast
import importlib
import json
import re
import unicodedata
from functools import lru_cache
from typing import Any

from components.reasoning_gym.entries import loads
from components.reasoning_gym.library import open_dataset
from components.rewards.base import Judgement, JudgingVerifier, Refused, final_answer
from components.types import Prompt

EVALUATING = (
    "algorithmic.binary_matrix",
    "algorithmic.spiral_matrix",
    "algorithmic.string_insertion",
    "games.n_queens",
)
"""Modules of the library whose scorer passes an answer to `eval`."""
PARSING = ("games.countdown", "games.puzzle24")
"""Those that import `parse_expr` of sympy, which is an `eval`; others call it as ``sympy.parse_expr``."""
_FORMULA = re.compile(r"[\w\s+\-*/^().,=!]*", re.ASCII)
_ATTRIBUTE = re.compile(r"\.\s*[A-Za-z_]|__")
_WORD = re.compile(r"[A-Za-z_]\w+")
_TRIGONOMETRIC = [
    f"{a}{name}{h}" for a in ("", "a") for name in ("sin", "cos", "tan", "cot", "sec", "csc") for h in ("", "h")
]
_FUNCTIONS = frozenset([*_TRIGONOMETRIC, "exp", "log", "ln", "sqrt", "Abs", "abs", "erf", "pi", "oo"])
LONGEST_FORMULA = 2000
DIGITS = 9
"""To which a score counts: some are sums of shares, which miss 1 by a rounding."""


class ReasoningGymVerifier(JudgingVerifier):
    """Passes what follows the last ``marker``, or what the last element ``tag`` holds, to the scorer of the prompt's
    data set.

    The accuracy is 1 for full marks and 0 for anything less: the library gives some of its marks for form alone. With
    ``partial`` the reward part ``partial`` is what it gives an answer that is not right. Metric: ``library_score``.

    Letters and digits that only look like those of ASCII are wrong, unless the reference has them: many scorers read
    numbers with `int` or `Decimal`, which take the digits of any script.

    The library's scorers run an answer as Python in a few data sets (`eval`). Here they get a reader of literals, and a
    reader of formulas made of numbers, single letters and mathematical functions, in its place; what cannot be read so
    is as wrong as what `eval` cannot run.
    """

    def __init__(self, marker: str | None, tag: str | None, strip: bool, partial: bool) -> None:
        self.marker, self._tag, self._strip, self._partial = marker, tag, strip, partial

    def prepare(self) -> None:
        import reasoning_gym  # noqa: F401, a second that no item should pay for

        disarm()

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        """Raises Refused for a prompt of another source, ValueError for a score that is not in [0, 1]."""
        if not prompt.reference:
            raise Refused("this prompt does not come from reasoning_gym: there is no entry to score by")
        answer = self._answer(text)
        disguised = answer is not None and not look_alikes(answer) <= look_alikes(prompt.answer)
        score = 0.0 if answer is None or disguised else self._score(prompt, answer)
        right = score == 1
        parts = {"partial": 0.0 if right else score} if self._partial else {}
        return Judgement(float(right), parts, {"library_score": score})

    def wrap(self, answer: str) -> str:
        return f"<{self._tag}>{answer}</{self._tag}>" if self._tag else super().wrap(answer)

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        forms = {"alone": prompt.answer}
        if self._strip:
            forms["outer white space"] = f" {prompt.answer}\n"
        return {name: self.wrap(form) for name, form in forms.items()}

    def hacks(self, prompt: Prompt) -> dict[str, str]:
        return {"scorer's own variable": self.wrap("[*entry['answer']]")}

    def _answer(self, text: str) -> str | None:
        answer = last_element(text, self._tag) if self._tag else final_answer(text, self.marker)
        return answer.strip() if answer is not None and self._strip else answer

    def _score(self, prompt: Prompt, answer: str) -> float:
        reference = loads(prompt.reference)  # a fresh object for each answer: a scorer may change what it is given
        dataset = _dataset(reference["dataset"], json.dumps(reference["settings"], sort_keys=True))
        score = round(float(dataset.score_answer(answer, reference["entry"])), DIGITS)
        if not 0 <= score <= 1:
            raise ValueError(f"the library's score is {score}, which is not in [0, 1]")
        return score


def last_element(text: str, tag: str) -> str | None:
    """What the last element of this name holds, each read up to its first end; None where there is none.

    It looks at every character once: a regular expression would look for the end of each of thousands of beginnings.
    """
    begin, end, at, found = f"<{tag}>", f"</{tag}>", 0, None
    while (start := text.find(begin, at)) >= 0 and (stop := text.find(end, start + len(begin))) >= 0:
        found, at = text[start + len(begin) : stop], stop + len(end)
    return found


@lru_cache(maxsize=256)
def _dataset(name: str, settings: str) -> Any:
    """The data set that scores; it makes no entries, so seed and size do not matter."""
    return open_dataset(name, {**json.loads(settings), "seed": 0, "size": 1})


def look_alikes(text: str) -> set[str]:
    """Its characters that stand for a letter or digit of ASCII and are none, such as full-width digits."""
    return {c for c in text if not c.isascii() and (c.isdigit() or unicodedata.normalize("NFKC", c).encode().isalnum())}


def disarm() -> None:
    """Nothing that a policy wrote is executed: the library's `eval` and `parse_expr` become readers."""
    import sympy

    parse = sympy.parse_expr

    def parse_formula(text: str, *arguments: Any, **options: Any) -> Any:
        check_formula(text)
        return parse(text, *arguments, **options)

    for module in EVALUATING:
        importlib.import_module(f"reasoning_gym.{module}").__dict__["eval"] = ast.literal_eval
    for module in PARSING:
        importlib.import_module(f"reasoning_gym.{module}").__dict__["parse_expr"] = parse_formula
    sympy.parse_expr = parse_formula


def check_formula(text: str) -> None:
    """Raise ValueError for anything but numbers, single letters, operators, brackets and functions of mathematics."""
    if len(text) > LONGEST_FORMULA or not _FORMULA.fullmatch(text) or _ATTRIBUTE.search(text):
        raise ValueError("not a formula")
    if unknown := [word for word in _WORD.findall(text) if word not in _FUNCTIONS]:
        raise ValueError(f"{unknown[0]!r} is no function of mathematics")
