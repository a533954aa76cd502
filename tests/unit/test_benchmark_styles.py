"""Drawn answers in many styles: what is drawn, that it is what it says, and how verdicts on it are counted."""

from __future__ import annotations

import cmath
import random
import re
from collections import defaultdict
from collections.abc import Callable

import pytest
import simpleeval

from tests.benchmarks.section import Row
from tests.benchmarks.styles.cases import HELD_FORMS, HELD_STYLES, Case, draw_cases
from tests.benchmarks.styles.counting import counted
from tests.benchmarks.styles.figures import FIGURES, figures, short_of_aim
from tests.benchmarks.styles.judging import Judged, Outcome, judge
from tests.benchmarks.styles.kinds import KINDS
from tests.benchmarks.styles.statements import STYLES, TWO_ANSWERS

CASES = [*draw_cases(seed=1, each=4)]
VALUED = ["small_int", "large_int", "negative", "decimal", "money", "percent", "unit", "angle", "fraction", "surd",
          "pi", "power", "poly1", "poly2", "complex"]  # fmt: skip
"""Kinds whose answers are numbers, or expressions that have a value where their letters have one."""
NAMES = {"P": cmath.pi, "i": 1j, "x": 1.7, "y": 0.6, "z": 2.9, "t": 1.3, "n": 0.8}
UNIT = re.compile(r"[~\\ ]*\\(text|mathrm)\{[^}]*\}| cm")
NO_VALUE = re.compile(r"\\text|\\mathrm|\d \d|[=:<>]|\\pm|^\([^()]*,|^\\\{")
REWRITTEN = [
    (r"(?<=\d)(\{,\\!\}|\{,\}|,\\!|\\,|,)(?=\d{3})", ""),
    (r"\s?\\[$%]|\\[$]|\^\{?\\circ\}?", ""),
    ("−", "-"),
    (r"π|\\pi", "P"),
    (r"(\d)e(-?\d+)", r"\1*10**(\2)"),
    (r"\\[dt]?frac(\d)(\d)", r"(\1/\2)"),
    (r"(?<!\d)(\d+) ?\\frac\{(\d+)\}\{(\d+)\}", r"(\1+\2/\3)"),
    (r"\\sqrt(\d)", r"S(\1)"),
    *3 * [(r"\\sqrt\{([^{}]*)\}", r"S(\1)"), (r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))")],
    (r"\^\{([^{}]*)\}", r"**(\1)"),
    (r"\^(\w)", r"**\1"),
    (r"\s*\\(cdot|times)\s*", "*"),
    (r"(?<=[\w)])(?<!S)\s*(?=[A-Za-z(])", "*"),
]  # fmt: skip


def value(latex: str) -> complex | None:
    """What LaTeX is worth, by rules that the verifiers have no part in; None for what is no expression."""
    for pattern, text in REWRITTEN:
        latex = re.sub(pattern, text, latex)
    try:
        return complex(simpleeval.simple_eval(latex, names=NAMES, functions={"S": cmath.sqrt}))
    except (simpleeval.InvalidExpression, SyntaxError, TypeError):
        return None


def verdicts(outcome: Callable[[Case], Outcome]) -> list[Row]:
    """The row of a seed where every case gets this outcome."""
    common = {"date": "2026-11-01", "commit": "abc", "machine": {"processor": "P", "cores": 2}}
    versions = {"torch": "1", "transformers": "2"}
    judged = [Judged(case, outcome(case), "") for case in CASES]
    return [counted(1, judged) | common | {"versions": versions}]


def as_it_should_be(case: Case) -> Outcome:
    return "accepted" if case.right else "refused"


def test_the_same_seed_draws_the_same_cases_and_another_one_others():
    assert [*draw_cases(seed=1, each=4)] == CASES
    assert {case.text for case in draw_cases(seed=2, each=1)} - {case.text for case in CASES}


def test_every_kind_has_right_answers_in_every_style_that_fits_and_wrong_ones():
    found = defaultdict(set)
    for case in CASES:
        found[case.kind, case.right].add(case.style)
    for kind in KINDS:
        assert set(STYLES) - found[kind, True] <= {"unit_box", "variable_box"}
        assert len(found[kind, False]) > 6 and "two_answers" in found[kind, False]
    assert {style for (_, right), styles in found.items() if right for style in styles} == set(STYLES)


def test_numbers_have_every_separator_of_thousands_and_every_change_of_a_digit():
    found = defaultdict(set)
    for case in CASES:
        found[case.kind, case.right].add(case.form)
    assert found["large_int", True] == {"plain", "comma", "brace", "negthin", "thin", "trailing"}
    assert found["small_int", False] >= {"nearby", "sign", "times10", "over10", "digit_dropped", "digit_added"}


def test_what_is_reported_apart_is_drawn_with_both_verdicts():
    held = [case for case in CASES if case.held_back]
    assert {case.style for case in held if not case.right} == set(HELD_STYLES)
    assert {case.form for case in held if case.right} >= set(HELD_FORMS)
    assert {case.form for case in CASES if case.style == "two_answers"} == set(TWO_ANSWERS)


@pytest.mark.parametrize("kind", VALUED)
def test_every_form_has_the_value_of_its_reference_and_no_wrong_answer_has(kind):
    rng, sorts = random.Random(kind), set()
    for number in range(12):
        reference = KINDS[kind](rng, number)
        wanted = value(UNIT.sub("", reference.answer))
        assert wanted is not None, reference.answer
        for form in reference.forms.values():
            found = value(UNIT.sub("", form))
            assert found is not None and cmath.isclose(found, wanted, rel_tol=1e-9), (reference.answer, form)
        for name, wrong in (reference.wrong | {"other": reference.other}).items():
            if not NO_VALUE.search(wrong) and (found := value(wrong)) is not None:
                sorts.add(name)
                assert not cmath.isclose(found, wanted, rel_tol=1e-12), (reference.answer, name, wrong)
    assert len(sorts) >= 6


def test_each_case_is_judged_by_the_verifier_that_it_names():
    some = [case for case in CASES if case.kind in ("small_int", "unit") and case.marker == "####"]
    judged = [*judge(some, workers=1)]
    assert sorted(one.case.text for one in judged) == sorted(case.text for case in some)
    assert {case.verifier for case in some} == {"math", "numeric"}
    assert {(one.case.right, one.outcome) for one in judged} == {(True, "accepted"), (False, "refused")}


def test_every_case_is_counted_once_by_style_and_once_by_form():
    [row] = verdicts(as_it_should_be)
    assert sum(group["cases"] for group in row["styles"]) == len(CASES) and not row["unexpected"]
    halves = [forms for verifiers in row["forms"].values() for parts in verifiers.values() for forms in parts.values()]
    assert sum(cases for forms in halves for cases, _, _ in forms.values()) == len(CASES)
    found = figures([row])
    assert tuple(found) == FIGURES and found["unexpected"] == "none"
    right = sum(case.right for case in CASES)
    assert (found["right"], found["wrong"]) == (f"{right:,} of {right:,}", f"0 of {len(CASES) - right:,}")
    assert not short_of_aim([row])


def test_verdicts_that_are_not_as_they_should_be_are_named_and_short_of_the_aim():
    held = verdicts(lambda case: "unscorable" if case.style == "minerva" else as_it_should_be(case))
    assert [what.partition(" accepts")[0] for what in short_of_aim(held)] == ["math", "numeric"]
    assert all("(held back styles" in what for what in short_of_aim(held))
    sort = verdicts(lambda case: "accepted" if case.form == "pm" else as_it_should_be(case))
    assert [re.sub(r"accepts .*% of", "accepts", what) for what in short_of_aim(sort)] == [
        "math accepts wrong answers (other styles and forms)",
        "math accepts wrong answers (held back styles and forms)",
    ]
    assert "wrong `pm` of `pi` accepted by `math`: 4" in figures(sort)["unexpected"]


@pytest.mark.parametrize("name", FIGURES)
def test_without_a_row_every_figure_says_so(name):
    assert figures([])[name] == "not measured"
