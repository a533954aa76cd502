"""What one prompt came to under one policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from components.evaluation.statistics import mean
from components.types import Prompt

TUPLES = ("accuracies", "lengths", "truncated", "answers")


@dataclass(frozen=True, slots=True)
class PromptResult:
    """One test prompt under one policy.

    ``accuracies``, ``lengths`` (tokens), ``truncated`` and ``answers`` have one entry per sample at the training
    temperature, none where a suite has greedy completions alone; ``greedy`` is the accuracy of the greedy completion.
    An accuracy of None is unscorable: neither right nor wrong. An answer is the final answer in its plainest form, None
    where none is stated. ``reward`` (None when nothing was scorable), ``parts`` and ``metrics`` are means over the
    scorable samples. ``prompt_tokens`` is the length of the rendered prompt.
    """

    id: str
    family: str
    difficulty: float
    accuracies: tuple[float | None, ...]
    greedy: float | None
    lengths: tuple[int, ...]
    truncated: tuple[bool, ...]
    reward: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    answers: tuple[str | None, ...] = ()
    source: str = ""
    prompt_tokens: int = 0
    greedy_length: int = 0
    greedy_truncated: bool = False

    def __post_init__(self) -> None:
        if not len(self.accuracies) == len(self.lengths) == len(self.truncated):
            raise ValueError(f"prompt {self.id}: accuracies, lengths and truncated must have one entry per sample")
        if self.answers and len(self.answers) != len(self.accuracies):
            raise ValueError(f"prompt {self.id}: answers must have one entry per sample, or none at all")

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        """What `asdict` gave, after a way through JSON.

        Raises:
            TypeError, ValueError: it is something else.
        """
        fields: dict[str, Any] = {name: tuple(value) if name in TUPLES else value for name, value in row.items()}
        return cls(**fields)

    @property
    def scorable(self) -> list[float]:
        return [accuracy for accuracy in self.accuracies if accuracy is not None]

    @property
    def pass_at_1(self) -> float | None:
        """Mean accuracy of the scorable samples; None when there is none."""
        return mean(self.scorable)

    @property
    def votes(self) -> list[tuple[str | None, float]]:
        """Final answer and accuracy of every scorable sample; empty where answers were not recorded."""
        pairs = zip(self.answers, self.accuracies, strict=False)
        return [(answer, accuracy) for answer, accuracy in pairs if accuracy is not None]

    @property
    def completions(self) -> list[tuple[int, float | None, bool]]:
        """Length, accuracy and whether it was cut, of every sample; of the greedy completion where there is none."""
        if not self.accuracies:
            return [(self.greedy_length, self.greedy, self.greedy_truncated)]
        return list(zip(self.lengths, self.accuracies, self.truncated, strict=True))


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt with what it came to, and the text of its greedy completion.

    ``settled``: judged again it would come to the same; it might not where a verdict failed for want of time or memory.
    """

    prompt: Prompt
    result: PromptResult
    text: str
    settled: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Result and text: whoever keeps them knows the prompt, and keeps what is settled."""
        return {"result": asdict(self.result), "text": self.text}

    @classmethod
    def from_dict(cls, prompt: Prompt, row: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, after a way through JSON.

        Raises:
            TypeError, KeyError, ValueError: it is something else, or of another prompt.
        """
        result = PromptResult.from_dict(row["result"])
        if result.id != prompt.id:
            raise ValueError(f"the result of {result.id}, not of {prompt.id}")
        return cls(prompt, result, str(row["text"]))
