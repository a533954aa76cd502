"""Right when the final answer is the reference, written as a whole number and nothing else."""

from __future__ import annotations

import re

from components.rewards import Verifier, VerifierEntry
from components.rewards.base import final_answer
from components.types import Prompt

NUMBER = re.compile(r"-?[0-9]{1,30}")


class WholeNumber(Verifier):
    """Reads what follows the last ``marker``."""

    def __init__(self, marker: str | None) -> None:
        self.marker = marker

    def accuracy(self, prompt: Prompt, text: str) -> float:
        answer = (final_answer(text, self.marker) or "").strip()
        return float(NUMBER.fullmatch(answer) is not None and answer == prompt.answer)


VERIFIER = VerifierEntry(WholeNumber)
