"""Premise and hypothesis of the consistency question."""

from __future__ import annotations

from abc import abstractmethod

from components.rewards.base import Verifier
from components.types import Prompt


class ConsistencyVerifier(Verifier):
    """Its accuracy is P(consistent | question, thinking, answer).

    Thinking is what stands before the last ``marker``, the answer what follows it. Without a marker, without thinking
    or without an answer there is nothing that could follow from anything: 0.
    """

    def __init__(self, marker: str) -> None:
        self.marker = self._marker = marker

    def accuracy(self, prompt: Prompt, text: str) -> float:
        thinking, _, answer = (part.strip() for part in text.rpartition(self._marker))
        return self.probability(prompt.text, thinking, answer) if thinking and answer else 0.0

    @abstractmethod
    def probability(self, question: str, thinking: str, answer: str) -> float:
        """P(consistent) in [0, 1] of texts that are not empty."""


def hypothesis(answer: str) -> str:
    """What is claimed to follow from question and thinking."""
    return f"The final answer is {answer}"
