"""Right when the expression reaches the target with the given numbers, each used at most once."""

from __future__ import annotations

import re
from collections import Counter

from components.rewards.base import Verifier, final_answer
from components.tools.expressions import MAX_CHARS, evaluate
from components.types import Prompt

_LIST = re.compile(r"\[\s*([0-9]+(?:[,\s]+[0-9]+)*)[,\s]*\]")
_TARGET = r"[-\u2212]?[0-9]+(?![\w/*+^]|[.,]\d|\s*[-+*/]\s*\d)"
_CUE = r"(?:=|\b(?:equals?(?:\s+to)?|reach(?:es)?|makes?|target(?:\s+number)?(?:\s+(?:of|is))?))"
_STATED = re.compile(rf"{_CUE}\s*:?\s*({_TARGET})", re.IGNORECASE)
_ONLY = re.compile(rf"\D*?(?<![-\u2212\w.])({_TARGET})\D*")
_WRITTEN = re.compile(r"[\d+\-*/()\s]+")
_SIGN = re.compile(r"(?:^|[-+*/(])\s*[-+]")
_TYPESET = str.maketrans("×·÷\u2212\u2013", "**/--")


class CountdownVerifier(Verifier):
    """Judges what follows the last ``marker``; there are many right answers, so the reference is not looked at.

    An expression has digits, ``+ - * /`` and brackets, at most 64 characters (`components.tools.expressions`: a parser
    on fractions, nothing is executed). A sign is none of the four operations; typeset operators, a full stop and the
    target after an equals sign do not count.
    """

    def __init__(self, marker: str) -> None:
        self.marker: str = marker

    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raises ValueError when the question names no numbers and target: nothing could be right then."""
        numbers, target = read_question(prompt.text)
        answer = final_answer(text, self.marker)
        return float(answer is not None and reaches(_expression(answer, target), numbers, target))

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        """The reference expression in other dress; nothing where it does not reach the target."""
        answer = prompt.answer.strip()
        try:
            numbers, target = read_question(prompt.text)
        except ValueError:
            return {}
        if not reaches(answer, numbers, target):
            return {}
        forms = {
            "white space": f" {answer} ",
            "brackets": f"({answer})",
            "equals the target": f"{answer} = {target}",
            "typeset": answer.translate(str.maketrans("*-", "×\u2212")),
            "end of a sentence": f"{answer}.",
        }
        fits = {name: form for name, form in forms.items() if len(form.strip()) <= MAX_CHARS}
        return {name: self.wrap(form) for name, form in fits.items()}


def _expression(answer: str, target: int) -> str:
    """The answer without its dress. No pattern: one that may begin at any space takes quadratic time."""
    plain = answer.strip().removesuffix(".").translate(_TYPESET)
    before, sign, after = plain.rpartition("=")
    return (before if sign and after.strip() == str(target) else plain).strip()


def read_question(text: str) -> tuple[Counter[int], int]:
    """Numbers and target of ``[3, 8, 2] = 22``, or of any text with one list in brackets and one target.

    The target is what ``=``, "equals", "reach", "make" or "target" states, before the list or after it; where none of
    them stands, it is the only other number.

    Raises:
        ValueError: there is no list or target, or there are several.
    """
    lists, rest = _LIST.findall(text), _LIST.sub(" [] ", text)
    only = _ONLY.fullmatch(rest)
    stated = _STATED.findall(rest) or (only.groups() if only else ())
    targets = {int(digits.replace("\u2212", "-")) for digits in stated}
    if len(lists) != 1 or len(targets) != 1:
        raise ValueError(f"no numbers in brackets with one target next to them: {text[:80]!r}")
    return Counter(map(int, re.findall(r"[0-9]+", lists[0]))), targets.pop()


def reaches(expression: str, numbers: Counter[int], target: int) -> bool:
    """Whether ``expression`` is one, uses nothing but ``numbers``, and has the value ``target``."""
    if not expression.isascii() or not _WRITTEN.fullmatch(expression) or _SIGN.search(expression):
        return False
    try:
        value = evaluate(expression)
    except ValueError:
        return False
    return value == target and Counter(map(int, re.findall(r"\d+", expression))) <= numbers
