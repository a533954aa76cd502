"""Right when the answer is mathematically the reference."""

from __future__ import annotations

import re
from functools import lru_cache

from components.rewards.answers import answer_line, deceptive, last_box
from components.rewards.base import Refused, Verifier
from components.rewards.grammar.arithmetic import context
from components.rewards.grammar.comparison import same_answer
from components.rewards.grammar.judging import reference, verdict
from components.rewards.grammar.nodes import Answer, Node, number
from components.rewards.units import contradictory
from components.types import Prompt


class MathVerifier(Verifier):
    """Compares what stands in the line after the last ``marker``, or in the last box, with the reference.

    Both are one answer in the grammar of `components.rewards.grammar`, LaTeX or plain: ``1/2``, ``0.5``, ``\\frac12``;
    ``2x+1``, ``1+2x``; sets, intervals, points, matrices, equations, inequalities, words. Decimals agree to
    ``decimals`` places. Units and words around do not count, but ``12 m`` is not ``12 cm``. ``percent``: with ``strip``
    50 % is 50, with ``fraction`` it is 1/2. An answer that is longer than ``max_chars`` or nested deeper than anybody
    writes is not read, and wrong.
    """

    def __init__(self, marker: str | None, decimals: int, percent: str, max_chars: int) -> None:
        self.marker, self._decimals, self._percent, self._max_chars = marker, decimals, percent, max_chars
        self._reference = lru_cache(maxsize=1024)(self._read_reference)

    def prepare(self) -> None:
        context()

    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raises Refused when the reference is not one answer, or the answer may or may not be it."""
        answer = last_box(text) if self.marker is None else answer_line(text, self.marker)
        if answer is None or len(answer) > self._max_chars or deceptive(answer):
            answer = ""
        return verdict(self._reference(prompt.answer), prompt.answer, answer, algebra=True, same=self._same)

    def wrap(self, answer: str) -> str:
        return f"{self.marker} {answer}" if self.marker else f"\\boxed{{{answer}}}"

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        answer = prompt.answer.strip()
        try:
            self._reference(answer)
        except Refused:
            return {}
        forms = {"white space": f" {answer} ", "math": f"${answer}$"}
        if self.marker:
            forms["box"] = f"\\boxed{{{answer}}}"
        if re.fullmatch(r"-?[0-9]{1,200}", answer):
            forms |= {"decimal point": f"{answer}.0", "fraction": f"\\frac{{{2 * int(answer)}}}{{2}}"}
        return {name: self.wrap(form) for name, form in forms.items()}

    def _read_reference(self, answer: str) -> Answer:
        if len(answer) > self._max_chars or deceptive(answer):
            raise Refused(f"the reference answer {answer[:80]!r} is none that is read")
        return reference(answer, True, self._same)

    def _same(self, wanted: Answer, found: Answer) -> bool:
        if contradictory(wanted.unit, found.unit):
            return False
        return same_answer(self._measured(wanted), self._measured(found), self._decimals)

    def _measured(self, answer: Answer) -> Answer:
        if self._percent == "strip" or not answer.percent:
            return answer
        return answer._replace(node=Node("div", (answer.node, number(100))), percent=False)
