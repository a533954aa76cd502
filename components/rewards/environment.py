"""Stands for the rubric of an environment, which has judged a completion when its episode ends."""

from __future__ import annotations

from components.rewards.base import Refused, Verifier
from components.types import Prompt


class EnvironmentVerifier(Verifier):
    """Judges nothing by itself: a text alone is no episode."""

    def __init__(self, accuracy: str, rewards: tuple[str, ...]) -> None:
        self.judged_by = (accuracy, *rewards)

    def accuracy(self, prompt: Prompt, text: str) -> float:
        raise Refused("an environment judges the episodes that it has run itself, and no text")
