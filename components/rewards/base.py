"""The seam of everything that judges a completion, and the two verifiers that need nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from components.catalog import Declaration
from components.types import Prompt

NOTHING: Mapping[str, float] = MappingProxyType({})


class Judgement(NamedTuple):
    """The verdict of a verifier on one completion.

    ``accuracy`` is the raw verdict in [0, 1]; ``parts`` are further reward parts, each in [-1, 1] and not yet weighted;
    ``metrics`` are finite numbers that are reported and never rewarded.
    """

    accuracy: float
    parts: Mapping[str, float] = NOTHING
    metrics: Mapping[str, float] = NOTHING


class Refused(Exception):
    """This verifier will not judge this item: it could be right or wrong for no reason."""


class Verifier(ABC):
    """Judges one completion by itself. Pure: the same prompt and text give the same judgement.

    May raise, hang or run out of memory: the sandbox turns that into *unscorable*, neither right nor wrong. Building
    one is cheap and so are `wrap` and `equivalents`, which are also called outside the sandbox; what judging needs
    beyond that is loaded by `prepare`.
    """

    marker: str | None = None
    """The answer is what follows the last one of these in a completion."""

    def prepare(self) -> None:  # noqa: B027, most need nothing
        """Load what judging needs (a library, a model). Called once in the worker process, before the first text."""

    @abstractmethod
    def accuracy(self, prompt: Prompt, text: str) -> float:
        """Raw accuracy in [0, 1]; a text without an answer is wrong (0)."""

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        """The accuracy, with the reward parts and metrics of a verifier that has more to say than right or wrong."""
        return Judgement(self.accuracy(prompt, text))

    def wrap(self, answer: str) -> str:
        """The text of a completion that states ``answer`` in the form this verifier reads."""
        return f"{self.marker or ''}{answer}"

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        """Other completions that state the reference answer and must be right, by the name of their form.

        Called in the parent, so never raises: a reference that cannot be read has none.
        """
        return {}

    def hacks(self, prompt: Prompt) -> dict[str, str]:
        """Completions that exploit this kind of verifier and must be wrong, by name; like `equivalents` otherwise."""
        return {}


class JudgingVerifier(Verifier):
    """One that says more than right or wrong: its accuracy is that of its judgement."""

    def accuracy(self, prompt: Prompt, text: str) -> float:
        return self.judge(prompt, text).accuracy

    @abstractmethod
    def judge(self, prompt: Prompt, text: str) -> Judgement:
        """The accuracy, the reward parts and the metrics."""


@dataclass(frozen=True)
class VerifierEntry(Declaration):
    """``call(**settings)`` builds a `Verifier`; those from outside are called with `marker`, too."""


def final_answer(text: str, marker: str | None) -> str | None:
    """What follows the last ``marker``, or None where there is none. Without a marker: the whole text."""
    if not marker:
        return text
    _, found, answer = text.rpartition(marker)
    return answer if found else None


class ExactVerifier(Verifier):
    """Right when what follows the last ``marker`` is the reference answer; outer white space does not count."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def accuracy(self, prompt: Prompt, text: str) -> float:
        answer = final_answer(text, self.marker)
        return float(answer is not None and answer.strip() == prompt.answer.strip())

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        return {"outer white space": self.wrap(f" {prompt.answer}\n")}


class EnvironmentVerifier(Verifier):
    """Stands for the rubric of an environment, which has judged a completion when its episode ends: a text alone is no
    episode."""

    def __init__(self, accuracy: str, rewards: tuple[str, ...]) -> None:
        self.judged_by = (accuracy, *rewards)

    def accuracy(self, prompt: Prompt, text: str) -> float:
        raise Refused("an environment judges the episodes that it has run itself, and no text")
