"""The final answer of a completion in its plainest form, by which a majority is counted."""

from __future__ import annotations

from components.config.verifiers import Verifier
from components.data.likeness import even_answer
from components.rewards.answers import answer_line, stated
from components.rewards.base import final_answer as after_marker
from components.rewards.grammar.scan import last_statement

LINE = frozenset({"numeric", "math"})
"""Kinds of verifiers that read one line behind the marker: what follows is an explanation."""
WHOLE = frozenset({"structure", "code", "json", "classifier"})
"""Kinds of verifiers whose answers go over several lines: all that follows the marker is the answer."""


def final_answer(text: str, verifier: Verifier) -> str | None:
    """What the verifier reads. Numbers, boxes and options are equal however they are written; other answers when their
    texts are. Without a marker and a box the last line is the answer. None where none is stated.
    """
    answer = _read(text, verifier)
    if answer is None and not verifier.marker:
        answer = text.strip().rpartition("\n")[2]
    return even_answer(answer) if answer is not None and answer.strip() else None


def _read(text: str, verifier: Verifier) -> str | None:
    if verifier.kind in WHOLE:
        return after_marker(text, verifier.marker)
    if verifier.kind in LINE and verifier.marker:
        return answer_line(text, verifier.marker)
    return last_statement(text) if verifier.kind == "numeric" else stated(text, verifier.marker)
