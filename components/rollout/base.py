"""The seam between the loop and whatever samples completions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from components.types import Completion


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample: ``n`` completions per prompt; temperature 0 is greedy decoding."""

    n: int
    max_new_tokens: int
    temperature: float
    seed: int


class Engine(ABC):
    """Samples completions and reports the log-probability that it gave each token."""

    @abstractmethod
    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        """``sampling.n`` completions of each tokenised prompt, in order. The same seed gives the same completions.

        The log-probabilities are those of the distribution that was sampled from (after temperature), in nats. For
        greedy decoding they are those of the untempered distribution.
        """

    @abstractmethod
    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Sample from these weights from now on; a partial or foreign set is an error, never ignored."""
