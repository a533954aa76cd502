"""Right when the final answer is the reference answer, character by character."""

from __future__ import annotations

from components.rewards.base import Verifier, final_answer
from components.types import Prompt


class ExactVerifier(Verifier):
    """Compares what follows the last ``marker`` with the reference answer; outer white space does not count."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def accuracy(self, prompt: Prompt, text: str) -> float:
        answer = final_answer(text, self.marker)
        return float(answer is not None and answer.strip() == prompt.answer.strip())

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        return {"outer white space": self.wrap(f" {prompt.answer}\n")}
