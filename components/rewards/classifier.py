"""Right by the verdict of a learned classifier: for answers that no rule compares, such as sentences."""

from __future__ import annotations

from pathlib import Path

from components.rewards.answers import deceptive
from components.rewards.base import Judgement, JudgingVerifier, final_answer
from components.rewards.consistency.base import hypothesis
from components.rewards.pair_classifier import PairClassifier
from components.types import Prompt

READ = 2000
"""Characters of an answer; a longer one is wrong, since the classifier would not see its end."""


class ClassifierVerifier(JudgingVerifier):
    """P(``label`` | question and reference answer, "The final answer is ...") is at least ``threshold``.

    The classifier sees the reference and what follows the last ``marker``, and nothing of the thinking, which would be
    room to talk it round. A learned judge can be fooled all the same: watch it with the audit. Metric:
    ``probability``.
    """

    def __init__(self, marker: str, path: str | Path, label: str, threshold: float) -> None:
        self.marker, self._path, self._label, self._threshold = marker, path, label, threshold
        self._classifier: PairClassifier | None = None

    def prepare(self) -> None:
        self._classifier = PairClassifier(self._path, self._label)

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        if self._classifier is None:
            self.prepare()
        assert self._classifier is not None
        answer = (final_answer(text, self.marker) or "").strip()
        if not answer or len(answer) > READ or deceptive(answer):
            return Judgement(0.0, metrics={"probability": 0.0})
        premise = f"The reference answer is {prompt.answer}"
        probability = self._classifier.probability(prompt.text, premise, hypothesis(answer))
        return Judgement(float(probability >= self._threshold), metrics={"probability": probability})
