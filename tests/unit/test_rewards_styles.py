"""Ends of completions by two authors who had not read the grammar: right, wrong, and what may be neither.

A selection: what was judged wrongly at first, and what no other table has. `RIGHT` are accepted, `WRONG`
refused, `OPEN` get no full reward in either case. Reference -> answers.
"""

from __future__ import annotations

import pytest

from components.rewards.numeric import NumericVerifier
from components.rewards.symbolic import MathVerifier
from tests.answers.measure import verdict

NUMERIC, LAST = NumericVerifier("####", 1e-6), NumericVerifier(None, 1e-6)
ANSWER = NumericVerifier("Answer:", 1e-6)
MATH, FINAL = MathVerifier(None, 6, "strip", 400), MathVerifier("Final Answer:", 6, "strip", 400)
Table = dict[str, list[str]]

NUMERIC_RIGHT: Table = {
    "72": ["<answer>72</answer>", "<b>72</b>", "72<|im_end|>", "72</s>", "72 ✅", "👉 72", "48 + 24 = 72 ✓",
           "72 clips in total.", "The final answer is $\\boxed{72}$.", "_72_", "7.2e1", "72 (clips)",
           "71\nWait, that is one short.\n#### 72", "72\n\n(48 in April, 24 in May)"],
    "18": ["$18/day", "$18 per day", "$18.00 USD", "US$18", "18 $", "$\\$18$"],
    "20": ["20 €", "€20", "20 EUR"],
    "-18": ["minus 18", "negative 18", "−18", "–18", "-$18", "$-18", "x = -18"],
    "1234567": ["1\u202f234\u202f567", "1’234’567", "12,34,567", "1.234567 million", "1.234.567,00", "1\\,234\\,567"],
    "3.25": ["3¼", "3\\frac{1}{4}", "3 1/4 cups", "\\dfrac{13}{4}"],
    "1/3": ["0.(3)", "0.333...", "0.\\dot{3}", "0.\\overline{3}", "⅓", "2/6"],
    "0.1666666667": ["0.1666..."],
    "6000": ["6·10^3", "6 x 10^3", "6 thousand", "6*10**3"],
    "15": ["15th", "15 m/s^2", "15\\,\\mathrm{cm}", "15 people per hour", "15 apples/day"],
}  # fmt: skip
NUMERIC_WRONG: Table = {
    "72": ["48 24 72", "71 or 72", "72? No, 71", "70–74", "at least 72", "72/72", "√72", "73 = 72", "7²", "seventy-one",
           "72 less 1", "72 clips short of 100", "7<b></b>2", "7✅2", "72\nWait, that is one more.\n#### 71",
           "72/two", "minus 72"],
    "18": ["$18 million", "$18 - $2", "$9 + $8", "minus 18", "20 minus 2"],
    "-18": ["--18", "±18", "|-18|", "not negative 18"],
    "1234567": ["1, 234, 567", "1,,234,567", "1,234,567,000"],
    "1/3": ["0.333", "33%", "1/30", "0.33..."],
    "15": ["15h30", "1 hour 15 minutes", "15 hundred", "15 cm 20 mm", "page 1 of 15", "1/15th"],
    "6000": ["610^3", "6 x 103", "6+10^3"],
}  # fmt: skip
NUMERIC_OPEN: Table = {
    "72": ["72!", "72?", "~~71~~ 72", "6 * 12", "LXXII", "Natalia sold 72 clips altogether.", "72 clips or so"],
    "3.25": ["3,25", "3-1/4"],
    "20": ["20,00 €", "20.000,00 €"],
    "-18": ["(18)"],
    "18": ["nonnegative 18"],
}
BOX_RIGHT: Table = {
    "\\frac{3}{4}": ["{3 \\over 4}", "\\ \\frac{3}{4}\\ ", "\\frac{3}{4} = 0.75", "\\frac{-3}{-4}", "¾"],
    "\\{1,2,3\\}": ["{1, 2, 3}", "\\{\\,1,\\,2,\\,3\\,\\}", "1,2,3"],
    "[2,5)": ["\\{x \\mid 2\\le x<5\\}", "\\{x \\in \\mathbb{R} : 2\\le x<5\\}", "x \\in [2,5)"],
    "x>2": ["\\{x : x > 2\\}", "2<x"],
    "(-\\infty,-1)\\cup(2,\\infty)": ["x<-1 \\text{ or } x>2",
        "x>2 \\text{ or } x<-1", "(2,\\infty)\\cup(-\\infty,-1)"],
    "(3,-4)": ["x=3, y=-4", "y=-4, x=3", "x=3\\text{ and }y=-4", "(x,y)=(3,-4)"],
    "1,2": ["x_1=1, x_2=2", "x=2\\text{ or }1"],
    "12:30": ["12{:}30"],
    "\\binom{10}{3}": ["{10 \\choose 3}", "\\frac{10!}{3!7!}", "120"],
    "\\frac{1}{3}": ["\\frac{1}{3} \\approx 0.333", "0.\\dot{3}", "0.\\overline{3}"],
    "43": ["42+1=43", "\\boxed{43}", "x = \\boxed{43}", "\\quad 43 \\quad", "\\textbf{43}"],
    "5040": ["5\\,040", "7!"],
    "1234567": ["1{,\\!}234{,\\!}567"],
    "7:2": ["7\\text{:}2", "7{:}2", "7 \\colon 2"],
    "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}": ["\\mathbf{v} = \\begin{bmatrix} 1 \\\\ 2 \\end{bmatrix}"],
    "x+2y": ["P(x,y) = 2y + x", "f(x, y)=x+2y"],
    "10": ["C(5,2) = 10", "10\\text{ min}"],
    "30\\text{ minutes}": ["30", "30\\text{ min}", "30 minutes"],
    "\\$4.50": ["4.50\\text{ dollars}", "\\$4.50 \\text{ USD}"],
    "60^\\circ": ["60", "60\\text{ degrees}"],
}  # fmt: skip
BOX_WRONG: Table = {
    "\\frac{3}{4}": ["{4 \\over 3}", "3/4 \\text{ or } 4/3", "\\frac{3}{4}\\frac{4}{3}"],
    "\\{1,2,3\\}": ["{1, 2}", "\\{123\\}", "[1,3]", "\\{1,2\\},\\{3\\}"],
    "[2,5)": ["\\{x \\mid 2\\le x\\le 5\\}", "x \\notin [2,5)", "[2,5)\\cup\\{6\\}"],
    "x>2": ["\\{x : y > 2\\}", "\\{x : x = 2\\}", "2>x"],
    "(-\\infty,-1)\\cup(2,\\infty)": ["x<-1 \\text{ and } x>2", "x<-1", "x\\le-1 \\text{ or } x\\ge2"],
    "x<-1 \\text{ or } x>2": ["x<-1 \\text{ and } x>2"],
    "(3,-4)": ["y=3, x=-4", "x=3", "x=3, y=-4, z=0", "(3,-4)\\text{ or }(-3,4)"],
    "x_1=1, x_2=2": ["x_1=2, x_2=1"],
    "1,2": ["x_1=1, x_2=3", "x=1, y=3", "1\\text{ to }2"],
    "43": ["\\boxed{43}42", "42\\boxed{43}", "43=42", "40<x<44", "\\overline{43}",
           "43\\color{white}{2}", "4\\phantom{0}3", "43 | 42", "43'", "\\cancel{43}",
           "43 \\text{ if } x>0"],
    "1234": ["1{,\\!}23", "1{,\\!}2345"],
    "7:2": ["2{:}7", "7\\text{:}3"],
    "72": ["7\\text{:}2"],
    "x+2y": ["P(x,y)", "P(x,y)=x-2y", "P(x+2y,0)"],
    "10": ["C(5,2)", "f(10,10)", "f(10,10)=11"],
    "30\\text{ minutes}": ["30\\text{ hours}", "30\\text{ sec}"],
    "\\$4.50": ["4.50\\text{ cents}", "4.50¢"],
    "60^\\circ": ["60\\text{ radians}", "60\\text{ rad}"],
    "\\binom{10}{3}": ["{3 \\choose 10}", "\\frac{10!}{3!7}", "\\frac{10!}{37!}"],
}  # fmt: skip
BOX_OPEN: Table = {
    "\\emptyset": ["\\text{no solution}"],
    "2516_8": ["2516", "1358"],
    "\\frac{\\pi}{3}": ["60^\\circ"],
    "(3,-4)": ["[3,-4]", "\\text{The point } (3,-4)"],
    "12:30": ["12.30", "12:30 \\text{ p.m.}"],
}
WHOLE_RIGHT: list[tuple[NumericVerifier | MathVerifier, str, str]] = [
    (ANSWER, "72", "48 + 24 = 72.\n\n**Answer:** 72"),
    (ANSWER, "72", "48 + 24 = 72.\n\n**Answer: 72**"),
    (ANSWER, "72", "<b>Answer:</b> 72 clips"),
    (ANSWER, "72", "Answer:\n```\n72\n```"),
    (ANSWER, "72", "**Final Answer:** The final answer is 72. I hope it is correct."),
    (ANSWER, "72", "**Step 1** done.\nAnswer: **72** clips"),
    (FINAL, "10\\sqrt{3}", "**Final Answer:** $10\\sqrt{3}$"),
    (FINAL, "7", "**Final Answer:**\n\n$$\n7\n$$"),
    (LAST, "72", "Thus \\(48 + 24 = \\boxed{72}\\)."),
    (LAST, "72", "She sold 72 clips in all.\n\nCheck: 48 + 24 = 72 ✓."),
    (LAST, "72", "She sold 48 and then 24, so 72."),
    (LAST, "72", "$x = 72\\text{ square inches} = \\boxed{72\\text{ square inches}}$"),
    (MATH, "1,2", "The solutions are $\\boxed{1}$ and $\\boxed{2}$."),
    (MATH, "1,2,3", "So \\boxed{1}, \\boxed{2}, and \\boxed{3}."),
    (MATH, "43", "\\boxed{43}\n\nIndeed, \\boxed{43}"),
    (MATH, "43", "<think>43? \\boxed{42}? no.</think>\n\nThe answer is $\\boxed{43}$."),
    (MATH, "43", "<think>So it is \\boxed{43}.</think>\n"),
    (NUMERIC, "72", "<think>#### 12? no</think>\n#### 72"),
]
WHOLE_WRONG: list[tuple[NumericVerifier | MathVerifier, str, str]] = [
    (ANSWER, "72", "**Answer:** 7 **2**"),
    (ANSWER, "72", "Answer:\n```\n71\n```\n72"),
    (LAST, "72", "The answer is either 71 or 72"),
    (LAST, "72", "The numbers of the question are 48 and 72."),
    (MATH, "43", "<think>So \\boxed{43}.</think>\n\nThe answer is 42."),
    (NUMERIC, "72", "<think>#### 72</think>\n\nThe answer is 71."),
    (LAST, "72", "<think>So it is 72</think>\n\nI do not know."),
    (MATH, "43", "\\boxed{42}, \\boxed{43}"),
    (MATH, "43", "\\boxed{42} or $\\boxed{43}$"),
    (MATH, "43", "\\boxed{\\boxed{43}42}"),
    (MATH, "43", "\\boxed{43} was my first try. Now \\boxed{42}."),
]


def judged(verifier: NumericVerifier | MathVerifier, table: Table) -> dict[tuple[str, str], float | None]:
    form = "\\boxed{{{}}}" if verifier.marker is None else "Some work, 1 + 1 = 2.\n#### {}"
    return {(r, a): verdict(verifier, r, form.format(a)) for r, answers in table.items() for a in answers}


@pytest.mark.parametrize(
    ("verifier", "table", "allowed"),
    [
        *[(NUMERIC, NUMERIC_RIGHT, {1.0}), (NUMERIC, NUMERIC_WRONG, {0.0}), (NUMERIC, NUMERIC_OPEN, {0.0, None})],
        *[(MATH, BOX_RIGHT, {1.0}), (MATH, BOX_WRONG, {0.0}), (MATH, BOX_OPEN, {0.0, None})],
    ],
    ids=[f"{kind}, {side}" for kind in ("numeric", "math") for side in ("right", "wrong", "open")],
)
def test_answers_of_another_author_are_judged_as_they_are_meant(verifier, table, allowed):
    assert {case: found for case, found in judged(verifier, table).items() if found not in allowed} == {}


@pytest.mark.parametrize(("cases", "expected"), [(WHOLE_RIGHT, 1.0), (WHOLE_WRONG, 0.0)], ids=["right", "wrong"])
def test_where_a_completion_states_its_answer(cases, expected):
    assert [(text, found) for v, ref, text in cases if (found := verdict(v, ref, text)) != expected] == []
