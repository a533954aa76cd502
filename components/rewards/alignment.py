"""What the embedded classifier looks at: how question, thinking and answer are aligned.

Made for work with numbers: equations in the thinking, and answers that are a result or are put together from the last
digits of results, as in column arithmetic. Every feature is in [0, 1], and takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?", re.ASCII)
_LEFT = re.compile(r"[\d.,$ ]+(?:[-+*/][\d.,$ ]+)+$", re.ASCII)
_RIGHT = re.compile(r"[ $]*(-?\d[\d,]*(?:\.\d+)?)", re.ASCII)
_TERM = re.compile(r"(^|[-+])([^-+]+)")
_FACTOR = re.compile(r"(^|[*/])([^*/]+)")
SPAN = 80
"""Characters next to an equals sign that can belong to its equation."""
DIGITS = 30
"""Longer numbers are not read."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMPARISON = re.compile(r"\s*(\d)([<=>])(\d)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Equation:
    """``left = right`` with at least one operation on the left."""

    left: str
    right: str

    @property
    def true(self) -> bool:
        return evaluate(self.left) == value(self.right)


@dataclass(frozen=True)
class Case:
    """One question with the thinking and the answer of a completion, read once for all features.

    ``results`` are the right-hand sides of the equations, ``numbers`` all numbers of the thinking as they are written,
    ``wanted`` is the answer as a number. What cannot be read as a number is None.
    """

    question: str
    thinking: str
    answer: str
    equations: Sequence[Equation]
    results: Sequence[Fraction | None]
    numbers: Sequence[str]
    wanted: Fraction | None

    @classmethod
    def read(cls, question: str, thinking: str, answer: str) -> Case:
        found = equations(thinking)
        results, numbers = [value(equation.right) for equation in found], NUMBER.findall(thinking)
        return cls(question, thinking, answer, found, results, numbers, value(answer))


def equations(text: str) -> list[Equation]:
    """Every ``expression = number`` in the text."""
    found = []
    for sign in re.finditer("=", text):
        left = _LEFT.search(text[max(0, sign.start() - SPAN) : sign.start()])
        right = _RIGHT.match(text[sign.end() : sign.end() + SPAN])
        if left and right:
            found.append(Equation(left[0], right[1]))
    return found


def evaluate(expression: str) -> Fraction | None:
    """Numbers with ``+ - * /`` and no brackets, exactly; None for what is not such an expression."""
    total = Fraction(0)
    for sign, term in _TERM.findall(expression):
        product = Fraction(1)
        for operation, factor in _FACTOR.findall(term):
            number = value(factor)
            if number is None or (operation == "/" and not number):
                return None
            product = product / number if operation == "/" else product * number
        total += -product if sign == "-" else product
    return total


def value(text: str) -> Fraction | None:
    """The one number that ``text`` is, apart from spaces, ``$`` and separators of thousands."""
    plain = text.replace(",", "").strip(" $")
    if len(plain) > DIGITS or not re.fullmatch(r"-?\d+(\.\d+)?", plain, re.ASCII):
        return None
    return Fraction(plain)


def last_result(case: Case) -> bool:
    """The answer is the result of the last equation."""
    return case.wanted is not None and case.results[-1:] == [case.wanted]


def any_result(case: Case) -> bool:
    """The answer is the result of some equation."""
    return case.wanted is not None and case.wanted in case.results


def assembled(case: Case) -> bool:
    """The answer is put together from the last two or more results: all of the last, the last digit of the others."""
    return any(matches(case, count) for count in range(2, min(len(case.results), DIGITS) + 1))


def assembled_from_all(case: Case) -> bool:
    """The same with every result of the thinking."""
    return 1 < len(case.results) <= DIGITS and matches(case, len(case.results))


def compared(case: Case) -> bool:
    """The thinking is comparisons of digits, all true, and the answer begins with the larger digit of each."""
    steps = [_COMPARISON.fullmatch(step) for step in case.thinking.split(";")]
    if not all(steps):
        return False
    digits = [(step[1], step[2], step[3]) for step in steps if step]
    true = all((x < y, x == y, x > y)["<=>".index(sign)] for x, sign, y in digits)
    return true and case.answer.startswith("".join(max(x, y) for x, _, y in digits))


def true_equations(case: Case) -> float:
    """Share of the equations that are true; 1 where there is none."""
    return _share([equation.true for equation in case.equations], empty=1.0)


def equations_per_digit(case: Case) -> float:
    """Equations over digits of the answer, at most 1."""
    return min(1.0, len(case.equations) / max(1, sum(map(str.isdigit, case.answer))))


def last_number(case: Case) -> bool:
    """The answer is the last number of the thinking, result or not."""
    return bool(case.numbers) and case.wanted is not None and value(case.numbers[-1]) == case.wanted


def mentioned(case: Case) -> bool:
    """The answer stands in the thinking, as text."""
    return case.answer.casefold() in case.thinking.casefold()


def in_question(case: Case) -> bool:
    """The answer is a number of the question."""
    return case.wanted is not None and case.wanted in map(value, NUMBER.findall(case.question))


def numbers_used(case: Case) -> float:
    """Share of the question's numbers that stand in the thinking."""
    used = set(map(value, case.numbers))
    return _share([value(number) in used for number in NUMBER.findall(case.question)], empty=1.0)


def digits_used(case: Case) -> float:
    """Share of the question's digits that stand in the thinking, each as often as in the question."""
    asked, used = (Counter(filter(str.isdigit, text)) for text in (case.question, case.thinking))
    return (asked & used).total() / asked.total() if asked else 1.0


def words_used(case: Case) -> float:
    """Share of the question's words of three or more letters that stand in the thinking."""
    asked, used = (set(_WORD.findall(text.casefold())) for text in (case.question, case.thinking))
    return len(asked & used) / len(asked) if asked else 1.0


def follows(case: Case) -> float:
    """The answer is a last or an assembled result and all equations are true, or it follows from comparisons."""
    return float(compared(case) or ((last_result(case) or assembled(case)) and true_equations(case) == 1))


FEATURES: dict[str, Callable[[Case], float]] = {
    feature.__name__: feature
    for feature in (
        last_result, any_result, assembled, assembled_from_all, compared, true_equations, equations_per_digit,
        last_number, mentioned, in_question, numbers_used, digits_used, words_used, follows,
    )
}  # fmt: skip


def features(question: str, thinking: str, answer: str) -> list[float]:
    """Every feature, in the order of `FEATURES`."""
    case = Case.read(question, thinking, answer)
    return [float(feature(case)) for feature in FEATURES.values()]


def matches(case: Case, count: int) -> bool:
    """The answer is put together from the last ``count`` results."""
    parts = [str(result) for result in case.results[-count:]]
    if not all(map(str.isdecimal, parts)):
        return False
    text = parts[-1] + "".join(part[-1] for part in reversed(parts[:-1]))
    return len(text) <= DIGITS and case.wanted == int(text)


def _share(flags: Sequence[bool], empty: float) -> float:
    return sum(flags) / len(flags) if flags else empty
