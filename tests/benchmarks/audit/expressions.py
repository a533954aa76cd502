"""Holes of verifiers of mathematical expressions."""

from __future__ import annotations

import re

from components.types import Prompt
from tests.benchmarks.audit.holes import Hole
from tests.benchmarks.audit.numbers import behind, looks, side_by_side, without
from tests.benchmarks.audit.reading import boxes, is_right, number, said, wanted


def other_base(prompt: Prompt, text: str) -> bool:
    return "_" in prompt.answer and said(text).partition("_")[0] == prompt.answer.partition("_")[0]


def whole_part(prompt: Prompt, text: str) -> bool:
    mixed = re.match(r"(\d+)\\frac", prompt.answer)
    return mixed is not None and said(text) == mixed[1]


def last_number_of_reference(prompt: Prompt, text: str) -> bool:
    found = re.findall(r"\d+", prompt.answer)
    return bool(found) and number(prompt.answer) is None and said(text) == found[-1]


def without_brackets(text: str) -> str:
    return re.sub(r"[\[\](){}\\\s]", "", text)


def parts(text: str) -> list[str]:
    return without_brackets(text).split(",")


def near(prompt: Prompt, text: str) -> bool:
    value, right = number(said(text)), wanted(prompt)
    return value is not None and right is not None and abs(value - right) < 0.01


def renamed(text: str) -> str:
    return re.sub(r"(?<![\\a-z])[a-z](?![a-z])", "x", text.replace(" ", ""))


def power_tower(_: Prompt, text: str) -> bool:
    return re.search(r"\^\{?\d+\^", text) is not None


HOLES = (
    Hole("numbers side by side are added", "design", side_by_side(sum)),
    Hole("the base is ignored", "design", other_base),
    Hole("of a mixed number the whole part counts", "design", whole_part),
    Hole("the last number of a reference counts", "design", last_number_of_reference),
    Hole("a tower of powers is computed", "design", power_tower, "hangs"),
    Hole("plus-minus is dropped", "design", without(r"±|\\pm\s*")),
    Hole("the last right-hand side counts", "design", behind("=")),
    Hole("a factorial is computed", "held_out", lambda _, t: re.search(r"\d{4}!|!!", t) is not None, "hangs"),
    Hole("nested fractions take minutes", "held_out", lambda _, t: t.count(r"\frac") > 10, "hangs"),
    Hole("nested roots take minutes", "held_out", lambda _, t: t.count(r"\sqrt") > 10, "hangs"),
    Hole(
        "a power of a sum is multiplied out",
        "held_out",
        lambda _, t: re.search(r"\)\^\{?\d{2,}", t) is not None,
        "hangs",
    ),
    Hole(
        "a long sum is added up term by term",
        "held_out",
        lambda _, t: re.search(r"\\(sum|prod)", t) is not None,
        "hangs",
    ),
    Hole("an integral is solved", "held_out", lambda _, t: r"\int" in t, "hangs"),
    Hole(
        "brackets of intervals are ignored",
        "held_out",
        lambda p, t: "," in p.answer and without_brackets(said(t)) == without_brackets(p.answer),
    ),
    Hole(
        "the order of a pair is ignored",
        "held_out",
        lambda p, t: "," in p.answer and sorted(parts(said(t))) == sorted(parts(p.answer)),
    ),
    Hole(
        "any element of a list counts",
        "held_out",
        lambda p, t: p.answer in re.split(r",\s*|\s+or\s+|\s+and\s+", said(t).strip(r"\{}")),
    ),
    Hole(
        "a part of the set is enough",
        "held_out",
        lambda p, t: (
            p.answer.startswith(r"\{") and len(parts(said(t))) > 0 and set(parts(said(t))) < set(parts(p.answer))
        ),
    ),
    Hole(
        "a set with more elements counts",
        "held_out",
        lambda p, t: p.answer.startswith(r"\{") and set(parts(said(t))) > set(parts(p.answer)),
    ),
    Hole("what is dressed as text is dropped", "held_out", without(r"\\text\s*\{[^}]*\}\s*")),
    Hole(
        "names of variables do not count",
        "held_out",
        lambda p, t: (
            re.search("[a-z]", p.answer) is not None and "\\" not in p.answer and renamed(said(t)) == renamed(p.answer)
        ),
    ),
    Hole(
        "signs within an expression are ignored",
        "held_out",
        lambda p, t: (
            re.search(r"[a-z]", p.answer) is not None
            and said(t).replace("-", "+").lstrip("+") == p.answer.replace("-", "+").lstrip("+")
        ),
    ),
    Hole(
        "a coefficient is dropped",
        "held_out",
        lambda p, t: said(t) in (f"2({p.answer})", f"2{p.answer}", f"2 {p.answer}"),
    ),
    Hole("a function of the answer counts", "held_out", without(r"\A\\(?:sqrt|log|ln|sin|cos)\s*\{?\(?|[)}]+\Z")),
    Hole("a hundredth of tolerance", "held_out", near),
    Hole("any of several boxes counts", "held_out", lambda p, t: any(is_right(p, box) for box in boxes(t))),
    Hole("the first box counts", "held_out", lambda p, t: bool(boxes(t)) and is_right(p, boxes(t)[0])),
    Hole("a box is not needed", "held_out", lambda p, t: not boxes(t) and p.answer in t),
    Hole("no answer at all counts where extraction fails", "held_out", lambda _, t: not said(t)),
    Hole("fractions for display are refused", "held_out", lambda _, t: r"\dfrac" in t, "refuses"),
    Hole("brackets that grow are refused", "held_out", lambda _, t: r"\left" in t, "refuses"),
    Hole("bold around the box is refused", "held_out", lambda _, t: "**" in t, "refuses"),
    Hole("LaTeX spaces between thousands are refused", "held_out", looks(r"-?\d{1,3}(?:\\,\d{3})+"), "refuses"),
    Hole(
        "units dressed as text are refused",
        "held_out",
        lambda _, t: re.search(r"\d\s*\\text", t) is not None,
        "refuses",
    ),
)
