"""Holes by an author who had read neither the probes nor the other holes: what reward functions in use do."""

from __future__ import annotations

import ast
import difflib
import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction

from components.types import Prompt
from tests.benchmarks.audit.holes import Effect, Hole
from tests.benchmarks.audit.reading import MARKER, NUMBER, boxes, said

FOLD = (("\\dfrac", "\\frac"), ("\\tfrac", "\\frac"), ("\\left", ""), ("\\right", ""))
COMMAND, BRACKETS = r"\\[a-zA-Z]+", r"\\?[\[\](){}]"
SCALE = re.compile(r"(?i)\s*(?:\\?%|k|m|thousand|million|hundred|dozen)\.?\Z")
OPERATIONS: dict[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def value(text: str) -> Fraction | None:
    """The number that the whole text is for `Fraction`, in ASCII and of a size that it can compute."""
    text = text.strip().strip("$*.").replace(",", "").replace(" ", "")
    if not text.isascii() or len(text) > 4000 or re.search(r"[eE][+-]?\d{4}", text):
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def equal(text: str, prompt: Prompt) -> bool:
    return (found := value(text)) is not None and found == value(prompt.answer)


def by_values(alike: Callable[[Fraction, Fraction], bool]) -> Callable[[Prompt, str], bool]:
    """Answer and reference are numbers, and alike."""

    def fires(prompt: Prompt, text: str) -> bool:
        found, wanted = value(said(text)), value(prompt.answer)
        return found is not None and wanted is not None and alike(found, wanted)

    return fires


def any_equal(parts: Iterable[str], prompt: Prompt) -> bool:
    return any(equal(part, prompt) for part in parts)


def reread(change: Callable[[str], str]) -> Callable[[Prompt, str], bool]:
    """The answer is changed before it is read as a number."""
    return lambda prompt, text: equal(change(said(text)), prompt)


def computed(node: ast.AST) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -computed(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        return OPERATIONS[type(node.op)](computed(node.left), computed(node.right))
    raise ValueError("not arithmetic")


def evaluated(prompt: Prompt, text: str) -> bool:
    try:
        found = computed(ast.parse(said(text).replace(",", "").replace("$", ""), mode="eval").body)
    except (ValueError, SyntaxError, ZeroDivisionError, RecursionError, MemoryError):
        return False
    return found == value(prompt.answer)


def unsigned(prompt: Prompt, text: str) -> bool:
    found = re.findall(r"[0-9][0-9,]*\.?[0-9]*", said(text))
    return len(found) == 1 and value(found[0]) == value(prompt.answer.lstrip("-"))


def to_places_of_reference(prompt: Prompt, text: str) -> bool:
    found, wanted = value(said(text)), value(prompt.answer)
    places = len(prompt.answer.partition(".")[2])
    return found is not None and wanted is not None and round(found, places) == wanted


def commonest(prompt: Prompt, text: str) -> bool:
    found = Counter(found for found in map(value, NUMBER.findall(text)) if found is not None)
    return bool(found) and found.most_common(1)[0][0] == value(prompt.answer)


def rewarded_for_length(prompt: Prompt, text: str) -> bool:
    return 0.6 * equal(said(text), prompt) + len(text) / 4000 >= 0.5


def squeezed(text: str) -> str:
    """Mathematics without what does not matter to its looks."""
    for one, other in FOLD:
        text = text.replace(one, other)
    return re.sub(r"\\[,;! ]|\s|\$", "", text).rstrip(".")


def looks(change: Callable[[str], object]) -> Callable[[Prompt, str], bool]:
    """Answer and reference look the same once both are changed."""
    return lambda prompt, text: change(squeezed(said(text))) == change(squeezed(prompt.answer))


def contains(prompt: Prompt, text: str) -> bool:
    found, wanted = squeezed(said(text)).lower(), squeezed(prompt.answer).lower()
    return bool(found) and (found in wanted or wanted in found)


def bare(text: str) -> str:
    return re.sub(r"\W", "", text).lower()


def hole(name: str, fires: Callable[[Prompt, str], bool], effect: Effect = "accepts") -> Hole:
    return Hole(name, "other_author", fires, effect)


NUMBERS = (
    hole("the reference in the answer", lambda p, t: p.answer.replace(",", "") in said(t).replace(",", "")),
    hole("the first number of the answer", lambda p, t: any_equal(NUMBER.findall(said(t))[:1], p)),
    hole("the last number of the text", lambda p, t: any_equal(NUMBER.findall(t)[-1:], p)),
    hole("one of the marked answers", lambda p, t: any_equal(t.split(MARKER)[1:], p)),
    hole("two per cent off", by_values(lambda found, wanted: abs(found - wanted) <= abs(wanted) / 50)),
    hole("less than one off", by_values(lambda found, wanted: abs(found - wanted) < 1)),
    hole("both as int", by_values(lambda found, wanted: int(found) == int(wanted))),
    hole("what stands between digits goes", reread(lambda said: re.sub(r"[^0-9.\-]", "", said))),
    hole("a pattern without a minus", unsigned),
    hole("arithmetic is carried out by a safe parser", evaluated),
    hole("per cent, k and thousand are cut off", reread(lambda said: SCALE.sub("", said))),
    hole("one of the alternatives", lambda p, t: any_equal(re.split(r",(?!\d{3}\b)|;| or | and ", said(t)), p)),
    hole("what stands behind the last =", reread(lambda said: said.rpartition("=")[2])),
    hole("startswith", lambda p, t: said(t).replace(",", "").lstrip("$ ").startswith(p.answer.replace(",", ""))),
    hole("NFKC before the comparison", reread(lambda said: unicodedata.normalize("NFKC", said))),
    hole("four of five characters", lambda p, t: difflib.SequenceMatcher(None, said(t), p.answer).ratio() >= 0.8),
    hole("no answer is 0", lambda p, t: (value(said(t)) or 0) == value(p.answer)),
    hole("a bonus for length", rewarded_for_length),
    hole("any number", lambda _, t: value(said(t)) is not None),
    hole("the number that stands most often", commonest),
    hole("rounded as the reference is", to_places_of_reference),
)
EXPRESSIONS = (
    hole("one of the boxes", lambda p, t: any(squeezed(box) == squeezed(p.answer) for box in boxes(t))),
    hole("characters have no order", looks(sorted)),
    hole("brackets are style", looks(lambda text: re.sub(BRACKETS, "", text))),
    hole("one contains the other", contains),
    hole("commands are thrown away", looks(lambda text: re.sub(COMMAND, "", text))),
)
TEXTS = (
    hole("all its words", lambda p, t: set(p.answer.lower().split()) <= set(said(t).lower().split())),
    hole("in, the wrong way round", lambda p, t: bare(said(t)) in bare(p.answer)),
)
CHOICES = (
    hole("the letter somewhere", lambda p, t: p.answer.strip("() ") in re.findall(r"\b[A-E]\b", said(t))),
    hole("the first character", lambda p, t: said(t).lstrip("( *").upper()[:1] == p.answer.strip("() ")),
)
