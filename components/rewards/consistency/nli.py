"""A sequence-pair classifier as the consistency reward model, as CORA's fine-tuned ModernBERT (2606.14691)."""

from __future__ import annotations

from pathlib import Path

from components.rewards.consistency.base import ConsistencyVerifier, hypothesis
from components.rewards.pair_classifier import PairClassifier


class NliVerifier(ConsistencyVerifier):
    """P(``label``) of premise "question, thinking" and hypothesis "The final answer is ...".

    Raises:
        ValueError: the folder's configuration names no class ``label``, or its tokenizer has no offsets.
    """

    def __init__(self, marker: str, path: str | Path, label: str | None) -> None:
        super().__init__(marker)
        self._classifier = PairClassifier(path, label)

    def probability(self, question: str, thinking: str, answer: str) -> float:
        return self._classifier.probability(question, thinking, hypothesis(answer))
