"""The seam between the loop and whatever samples completions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from components.config.rollout import Mixing
from components.policy import Policy
from components.policy.weights import Weights
from components.types import Completion, FinishReason


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample: ``n`` completions per prompt; temperature 0 is greedy decoding.

    A completion ends at the end token, at a token of ``stop``, or after ``max_new_tokens``. ``mixing`` is for training
    only, and only for engines that take embeddings; greedy decoding never mixes.
    """

    n: int
    max_new_tokens: int
    temperature: float
    seed: int
    stop: tuple[int, ...] | frozenset[int] = ()
    mixing: Mixing | None = None

    def __post_init__(self) -> None:
        if self.mixing is not None and self.temperature == 0:
            raise ValueError("greedy decoding never mixes")


def ended(policy: Policy, sampling: Sampling, ids: tuple[int, ...]) -> tuple[FinishReason, str]:
    """How a completion of at least one token ended, and its text, to which the token that ends it does not belong."""
    last = ids[-1]
    reason: FinishReason = "stop" if last == policy.eos_id else "stop_token" if last in sampling.stop else "length"
    return reason, policy.decode(ids if reason == "length" else ids[:-1])


class Engine(ABC):
    """Samples completions and reports the log-probability that it gave each token."""

    @abstractmethod
    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        """``sampling.n`` completions of each tokenised prompt, in order. The same seed gives the same completions.

        The log-probabilities are those of the distribution that was sampled from (after temperature), in nats. For
        greedy decoding they are those of the untempered distribution.
        """

    @abstractmethod
    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Sample from these weights from now on; a partial or foreign set is an error, never ignored. Each is read
        once, and none is kept."""

    def keep(self, weights: Weights) -> Weights:
        """A copy of weights, to be loaded later, when whoever owns them has others."""
        copied = {name: weight.detach().clone() for name, weight in weights.items()}
        return Weights(copied, weights.scores, weights.dtype)

    def rest(self) -> bool:
        """Give up memory that the learner needs until the next `load_weights`; nothing is sampled before it.

        Returns:
            Whether it has done so. The learner then makes room (`Learner.rest`) before weights are loaded.
        """
        return False

    def exclude(self, server: int) -> bool:
        """Have the other servers sample what this one would have; returns whether there are any."""
        return False

    @property
    def max_positions(self) -> int | None:
        """Longest sequence that it takes; None where that is up to the model."""
        return None

    def cancel(self) -> None:  # noqa: B027 - what most engines are at does not last
        """End what another thread waits for here, with an error there: the run fails, and nothing is sampled after it.

        An engine may also let it come to its end.
        """

    def close(self) -> None:  # noqa: B027 - most engines have nothing to let go of
        """Let go of processes and connections; nothing is sampled after it."""
