"""Right when the final expression is mathematically the reference, by math-verify (latex2sympy and sympy)."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from components.rewards.answers import deceptive, depth, stated
from components.rewards.base import Refused, Verifier
from components.types import Prompt

_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
_WORDS = re.compile(
    r"\\text\s*\{\s*(?P<text>[A-Za-z][A-Za-z' -]*)\}|(?=(?:[A-Za-z']+\s+)*[A-Za-z']{3})"
    r"(?P<plain>[A-Za-z][A-Za-z']*(?:(?:\s+|(?<=[A-Za-z]{3})-(?=[A-Za-z]{3}))[A-Za-z']+)*)"
)
"""Letters would be factors, but for a run of three or more: "ab" and "x-y" are mathematics."""
_REWRITES = (
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\^\s*(-?[0-9]{2,})"), r"^{\1}"),
    (re.compile(r"(?<=[0-9])[eE]([-+]?[0-9]{1,3})(?![0-9A-Za-z])"), r"\\times 10^{\1}"),
)
_NOT_READ = re.compile(
    r"\\(?:def|gdef|let|newcommand|renewcommand|input|include|write|csname|loop)\b"  # programs
    r"|\\text\s*\{[^{}]*[0-9]"  # "72 \text{ or 73}" would count as 72 with a unit
    r"|[0-9]{200}"
    r"|!.*!.*!"
)
MAX_DEPTH, MAX_POWERS = 12, 12
HEADROOM = 32 << 20
"""Bytes that must be left after a no: math-verify takes an expression that there was no memory for as a no."""


class MathVerifier(Verifier):
    """Compares what follows the last ``marker``, or stands in the last box, with the reference.

    Both are LaTeX or plain: ``1/2``, ``0.5``, ``\\frac12``; ``2x+1``, ``1+2x``; sets, intervals, matrices, equations
    (the last right-hand side counts). Decimals agree to ``decimals`` places. Units and what is dressed as text do not
    count. ``percent``: with ``strip`` 50 % is 50, with ``fraction`` it is 1/2. The whole answer must be one
    expression; one that is longer than ``max_chars`` or nested deeper than anybody writes is not read, and wrong.

    math-verify's own clocks are off, since they swallow what they interrupt: the fence is the clock.
    """

    def __init__(self, marker: str | None, decimals: int, percent: str, max_chars: int) -> None:
        self.marker, self._decimals, self._percent, self._max_chars = marker, decimals, percent, max_chars
        self._parse: Callable[[str], list[Any]] | None = None
        self._equal: Callable[..., bool] | None = None

    def prepare(self) -> None:
        import logging

        from math_verify import LatexExtractionConfig, parse, verify

        logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it repeats what was written, without bounds
        target = (LatexExtractionConfig(boxed_match_priority=0),)

        @lru_cache(maxsize=1024)
        def read(answer: str) -> list[Any]:
            found: list[Any] = parse(
                f"\\boxed{{{answer}}}",
                target,
                fallback_mode="no_fallback",
                extraction_mode="first_match",
                parsing_timeout=None,
            )
            return found

        self._parse, self._equal = read, verify
        read("\\frac{1}{2}")  # builds the parser's tables, which takes longer than to judge

    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raises Refused when the reference cannot be read: nothing could be right then."""
        wanted = self._plain(prompt.answer)
        if wanted is None:
            raise Refused(f"the reference answer {prompt.answer[:80]!r} is none that is read")
        answer = stated(text, self.marker)
        found = None if answer is None else self._plain(answer)
        if found is None:
            return 0.0
        if (words := _words(wanted)) is not None:
            return float(words == _words(found))
        if _NUMBER.fullmatch(wanted) and _NUMBER.fullmatch(found):
            one, two = _value(wanted), _value(found)
            if one == two or one.denominator == two.denominator == 1:
                return float(one == two)
        return float(self._same(wanted, found))

    def wrap(self, answer: str) -> str:
        return f"{self.marker} {answer}" if self.marker else f"\\boxed{{{answer}}}"

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        answer = prompt.answer.strip()
        if self._plain(answer) is None:
            return {}
        forms = {"white space": f" {answer} ", "math": f"${answer}$"}
        if self.marker:
            forms["box"] = f"\\boxed{{{answer}}}"
        if re.fullmatch(r"-?[0-9]{1,200}", answer):
            forms |= {"decimal point": f"{answer}.0", "fraction": f"\\frac{{{2 * int(answer)}}}{{2}}"}
        return {name: self.wrap(form) for name, form in forms.items()}

    def _plain(self, answer: str) -> str | None:
        """The answer without its dress, or None for one that is not read."""
        answer = answer.strip()
        if len(answer) > self._max_chars or deceptive(answer):
            return None
        for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
            if answer.startswith(opening) and answer.endswith(closing) and len(answer) > len(opening + closing):
                answer = answer[len(opening) : -len(closing)].strip()
        answer = re.sub(r"^\\?\$", "", answer).rstrip(".").strip()
        answer = re.sub(r"\s*\\?%$", "/100" if self._percent == "fraction" else "", answer)
        for pattern, replacement in _REWRITES:
            answer = pattern.sub(replacement, answer)
        too_much = depth(answer) > MAX_DEPTH or answer.count("^") > MAX_POWERS
        return None if not answer or too_much or _NOT_READ.search(answer) else answer

    def _same(self, wanted: str, found: str) -> bool:
        if self._parse is None or self._equal is None:
            self.prepare()
        assert self._parse and self._equal
        reference = self._parse(wanted)
        if reference and self._equal(
            reference, self._parse(found), float_rounding=self._decimals, timeout_seconds=None
        ):
            return True
        bytearray(HEADROOM)  # or MemoryError: it is judged again by a worker that no earlier answer has filled
        if not reference:
            raise Refused(f"the reference answer {wanted[:80]!r} is no mathematical expression")
        return False


def _words(answer: str) -> str | None:
    match = _WORDS.fullmatch(answer)
    return None if match is None else " ".join((match["text"] or match["plain"]).casefold().split())


def _value(number: str) -> Fraction:
    return Fraction(number.replace(",", ""))
