"""Right and wrong answers to references of every kind in every style, drawn with a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.benchmarks.styles.kinds import KINDS
from tests.benchmarks.styles.reference import Reference
from tests.benchmarks.styles.statements import TWO_ANSWERS, Answer, Statement, state, state_two, styles_for
from tests.benchmarks.styles.writing import as_text

HELD_STYLES = ("minerva", "bold_marker", "equation_box")
HELD_FORMS = ("mixed", "unsimplified", "factored")
"""Reported apart: what was missed of these was not looked at before the verifiers had been corrected for the others."""
SIMPLE = {"nearby", "sign", "times10", "over10", "digit_dropped", "digit_added", "digits_swapped", "exponent"}
"""Sorts of wrong answers that are written like a right one, so that a variable and a unit may stand around them."""
WITH_VARIABLE = SIMPLE | {"missing", "additional", "order"}
NO_SENTENCE = {"variable_box", "equation_box", "minerva"}
"""Styles that a question cannot be stated in."""
NOT_NUMERIC = {"other_unit", "question", "none", "inequality", "pm"}
"""Sorts that say nothing of `numeric`: with its default settings units do not count, and where no number is stated, it
may take one of the words before."""
LAST_NUMBER_RIGHT = {"or_right_last", "not", "between", *TWO_ANSWERS}
"""Without a marker `numeric` takes the last number, which may be the right one here."""


@dataclass(frozen=True)
class Case:
    """One completion for one verifier. ``form`` names the form of a right answer or the sort of a wrong one."""

    kind: str
    style: str
    form: str
    verifier: str
    marker: str | None
    question: str
    reference: str
    text: str
    right: bool

    @property
    def held_back(self) -> bool:
        """Of a style or a form that is reported apart."""
        return self.style in HELD_STYLES or (self.right and self.form in HELD_FORMS)


def draw_cases(seed: int, each: int = 30) -> Iterator[Case]:
    """Of ``each`` references a kind: a right answer in every style, every wrong answer in one, two answers at once."""
    rng = random.Random(seed)
    for kind, draw in KINDS.items():
        for number in range(each):
            reference = draw(rng, number)
            yield from _right(rng, kind, reference)
            yield from _wrong(rng, kind, reference)
            yield from _two(rng, kind, reference)


def _right(rng: random.Random, kind: str, reference: Reference) -> Iterator[Case]:
    """The forms take turns over the styles, in an order that is drawn."""
    names = list(reference.forms)
    rng.shuffle(names)
    for number, style in enumerate(styles_for(reference, Answer("any", "0"))):
        name = names[number % len(names)]
        form = reference.forms[name]
        answer = Answer(name, form, takes_unit="\\text" not in form and "\\$" not in form)
        if style in styles_for(reference, answer):
            yield from _cases(kind, reference, style, name, state(rng, style, reference, answer), True)


def _wrong(rng: random.Random, kind: str, reference: Reference) -> Iterator[Case]:
    for name, written in (reference.wrong | _around_right(rng, reference)).items():
        unit = name in SIMPLE and "\\" not in written
        answer = Answer(name, written, takes_variable=name in WITH_VARIABLE, takes_unit=unit)
        styles = styles_for(reference, answer)
        if name == "question":
            styles = [style for style in styles if style not in NO_SENTENCE]
        style = rng.choice(styles)
        yield from _cases(kind, reference, style, name, state(rng, style, reference, answer), False)


def _two(rng: random.Random, kind: str, reference: Reference) -> Iterator[Case]:
    right = rng.choice(list(reference.forms.values()))
    for name in TWO_ANSWERS:
        yield from _cases(kind, reference, "two_answers", name, state_two(rng, name, reference, right), False)


def _around_right(rng: random.Random, reference: Reference) -> dict[str, str]:
    """Wrong answers that hold a right one, or none."""
    right, other = rng.choice(list(reference.forms.values())), reference.other
    wrong = {
        "or_right_first": rf"{right} \text{{ or }} {other}",
        "or_right_last": rf"{other} \text{{ or }} {right}",
        "not": rf"\text{{not }} {right}",
        "question": rf"\text{{{reference.question}}}",
        "none": r"\text{cannot be determined}",
    }
    if reference.scalar:
        wrong |= {
            "range": rf"{right} \text{{ to }} {other}",
            "between": rf"\text{{between }} {other} \text{{ and }} {right}",
            "pm": rf"\pm {right}",
            "and_other": rf"{right} \text{{ and }} {other}",
            "inequality": f"x > {right}",
        }
    return wrong


def _cases(kind: str, reference: Reference, style: str, form: str, statement: Statement, right: bool) -> Iterator[Case]:
    """A statement for every verifier that is to judge it."""
    marker, text = statement
    yield Case(kind, style, form, "math", marker, reference.question, reference.answer, text, right)
    if reference.numeric and _for_numbers(form, marker, right):
        plain = as_text(reference.answer)
        yield Case(kind, style, form, "numeric", marker, reference.question, plain, text, right)


def _for_numbers(form: str, marker: str | None, right: bool) -> bool:
    if right:
        return form != "fraction"  # LaTeX that is more than a number as it is written
    return form not in NOT_NUMERIC and (marker is not None or form not in LAST_NUMBER_RIGHT)
