"""The seam of everything that judges a completion."""

from __future__ import annotations

from abc import ABC, abstractmethod

from components.types import Prompt


class Verifier(ABC):
    """Judges one completion by itself. Pure: the same prompt and text give the same accuracy."""

    @abstractmethod
    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raw accuracy in [0, 1]; a text without an answer is wrong (0).

        May raise, hang or run out of memory: the sandbox turns that into *unscorable*, neither right nor wrong.
        """


def final_answer(text: str, marker: str) -> str | None:
    """What follows the last ``marker``, or None where there is none. An empty marker takes the whole text."""
    if not marker:
        return text
    _, found, answer = text.rpartition(marker)
    return answer if found else None
