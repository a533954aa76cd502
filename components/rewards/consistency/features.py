"""What the embedded classifier looks at: how question, thinking and answer are aligned.

Made for work with numbers: equations in the thinking, and answers that are a result or are put together from the last
digits of results, as in column arithmetic. Every feature is in [0, 1], and takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from components.rewards.consistency.reading import DIGITS, NUMBER, Case, value

_WORD = re.compile(r"[^\W\d_]{3,}")
_COMPARISON = re.compile(r"\s*(\d)([<=>])(\d)\s*", re.ASCII)


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
