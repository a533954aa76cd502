r"""Twelve styles in which models state an answer, and ways to state two.

A style has one or more variants: the marker that a verifier looks for (None: the last box), and a template. In it
``<answer>`` is LaTeX, ``<marked>`` the same as it stands behind a marker (plain or in dollars), ``<equation>`` the
answer with its variable before it, ``<left>`` the left side of a chain, ``<unit>`` the unit of the question.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.benchmarks.styles.reference import Reference
from tests.benchmarks.styles.writing import as_text

HASH, SENTENCE, FINAL = "####", "The answer is", "The final answer is"
Variant = tuple[str | None, str]
STYLES: dict[str, list[Variant]] = {
    "hash": [(HASH, "#### <marked>")],
    "sentence": [(SENTENCE, "The answer is <marked>."), (SENTENCE, "The answer is: <marked>.")],
    "box_inline": [
        (None, r"Therefore, the answer is $\boxed{<answer>}$."),
        (None, r"So the answer is \(\boxed{<answer>}\)."),
        (None, r"Hence we get $\boxed{<answer>}$"),
    ],
    "box_display": [
        (None, "\\[\n\\boxed{<answer>}\n\\]"),
        (None, r"\[ \boxed{<answer>}. \]"),
        (None, r"$$\boxed{<answer>}$$"),
        (None, r"\[\boxed{<answer>}\]."),
    ],
    "bold_answer_box": [
        (None, r"**Answer:** $\boxed{<answer>}$"),
        (None, r"**Final Answer:** \(\boxed{<answer>}\)"),
        (None, r"**Answer**: \boxed{<answer>}"),
    ],
    "minerva": [(FINAL, "Final Answer: The final answer is $<answer>$. I hope it is correct.")],
    "unit_box": [
        (None, r"The answer is $\boxed{<answer>\text{ <unit>}}$."),
        (None, r"\[\boxed{<answer>~\text{<unit>}}\]"),
        (None, r"$\boxed{<answer> \, \mathrm{<unit>}}$"),
    ],
    "variable_box": [(None, r"Thus $\boxed{<equation>}$."), (None, "\\[\n\\boxed{<equation>}\n\\]")],
    "think_box": [
        (None, "**Final Answer**\n$\\boxed{<answer>}$"),
        (None, r"The final answer is $\boxed{<answer>}$"),
        (None, r"$\boxed{<answer>}$"),
    ],
    "bold_marker": [
        (HASH, "#### **<marked>**"),
        (SENTENCE, "The answer is **<marked>**."),
        (SENTENCE, "**The answer is <marked>.**"),
    ],
    "heading_box": [
        (None, "### Final Answer\n\n$$\n\\boxed{<answer>}\n$$"),
        (None, "## Answer\n\n\\(\\boxed{<answer>}\\)\n"),
        (None, "### Conclusion\n\nThe answer is:\n\n\\[\n\\boxed{<answer>}\n\\]"),
    ],
    "equation_box": [
        (None, r"$$<left> = <answer> = \boxed{<answer>}$$"),
        (None, "So $<left> = <answer>$, and therefore\n\\[\n<left> = \\boxed{<answer>}.\n\\]"),
        (None, "\\begin{align*}\n<left> &= <answer> \\\\\n&= \\boxed{<answer>}\n\\end{align*}"),
    ],
}
TWO_ANSWERS: dict[str, list[Variant]] = {
    "two_boxes_right_first": [
        (None, r"Thus $\boxed{<answer>}$. Wait, that is not right. The answer is $\boxed{<other>}$.")
    ],
    "two_boxes_or": [
        (None, r"The answer is $\boxed{<answer>}$ or $\boxed{<other>}$."),
        (None, r"The answer is $\boxed{<other>}$ or $\boxed{<answer>}$."),
    ],
    "two_markers_right_first": [(HASH, "#### <marked>\nLet me check again.\n#### <marked other>")],
    "marker_or": [(HASH, "#### <marked> or <marked other>")],
    "only_in_thinking": [(None, "<think>I get <marked></think>\n\nThe answer is $\\boxed{<other>}$.")],
}
"""Where two answers are stated, or the right one is not the last: wrong."""
PROSE = (
    "Let's work through this step by step. <question> We set up the problem and simplify.\n\n",
    "First, we use the given information. Then we combine the two results.\n\n",
    "To solve this, note the following.\n\n1. Write down what is given.\n2. Simplify.\n\n",
    "Let me think about this carefully. We start from the definition and compute.\n",
)
"""What stands before every statement, one of them."""
THINKING = "<think>\nOkay, so <question> Let me try. <doubt>\n</think>\n\n"
"""What stands before that in the style `think_box`."""
DOUBTS = ("Maybe I should double check.", "Wait, let me redo that.", "Hmm, that seems right.")
PLACES = re.compile(r"<(question|doubt|answer|marked|other|marked other|equation|left|unit)>")


class Statement(NamedTuple):
    """A completion, and the marker behind which its answer stands."""

    marker: str | None
    text: str


class Answer(NamedTuple):
    """What is stated: the name of a form or of a sort of wrong answer, its LaTeX, and whether a variable may stand
    before it and a unit behind it."""

    name: str
    written: str
    takes_variable: bool = True
    takes_unit: bool = True


def styles_for(reference: Reference, answer: Answer) -> list[str]:
    """The styles in which this answer can be stated."""
    left_out = set()
    if reference.unit is None or not answer.takes_unit:
        left_out.add("unit_box")
    if reference.variable is None or not answer.takes_variable:
        left_out.add("variable_box")
    return [style for style in STYLES if style not in left_out]


def state(rng: random.Random, style: str, reference: Reference, answer: Answer) -> Statement:
    """The answer in one variant of the style."""
    variable = reference.variable if answer.takes_variable else None
    membership = variable is not None and variable.endswith(r"\in")
    fills: dict[str, Callable[[], str]] = {
        "question": lambda: reference.question,
        "doubt": lambda: rng.choice(DOUBTS),
        "answer": lambda: answer.written,
        "marked": lambda: marked(rng, answer.written),
        "equation": lambda: f"{variable}{' ' if membership else rng.choice([' = ', '='])}{answer.written}",
        "left": lambda: variable if variable and not membership else r"\text{Result}",
        "unit": lambda: str(reference.unit),
    }
    marker, template = rng.choice(STYLES[style])
    before = THINKING if style == "think_box" else ""
    return Statement(marker, _filled(before + rng.choice(PROSE) + template, fills))


def state_two(rng: random.Random, name: str, reference: Reference, right: str) -> Statement:
    """The right answer and another one."""
    fills: dict[str, Callable[[], str]] = {
        "question": lambda: reference.question,
        "answer": lambda: right,
        "marked": lambda: marked(rng, right),
        "other": lambda: reference.other,
        "marked other": lambda: marked(rng, reference.other),
    }
    marker, template = rng.choice(TWO_ANSWERS[name])
    return Statement(marker, _filled(rng.choice(PROSE) + template, fills))


def marked(rng: random.Random, written: str) -> str:
    """As it stands behind a marker: mostly as text where it can be, mostly in dollars where it is a formula."""
    text, likely = as_text(written), rng.random() < 0.7
    if re.search(r"[\\^_]", text):
        return f"${written}$" if likely else written
    return text if likely else f"${written}$"


def _filled(template: str, fills: Mapping[str, Callable[[], str]]) -> str:
    return PLACES.sub(lambda place: fills[place[1]](), template)
