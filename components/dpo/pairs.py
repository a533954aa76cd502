"""Preference pairs, and how the groups of a training step become some. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from components.seeds import derive
from components.types import Completion, Group, Score


@dataclass(frozen=True, slots=True)
class Answer:
    """One completion of a pair, end token included in ``token_ids``.

    ``sampled`` states for each token whether the policy wrote it; None means all. The accuracy is the verifier's and
    raw, the reward is what training saw; both are None in pairs from elsewhere.
    """

    text: str
    token_ids: tuple[int, ...]
    sampled: tuple[bool, ...] | None = None
    accuracy: float | None = None
    reward: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt with a better and a worse completion. ``step`` is the training step that sampled them, -1 for none."""

    prompt_id: str
    step: int
    prompt: str
    prompt_ids: tuple[int, ...]
    chosen: Answer
    rejected: Answer

    @property
    def length(self) -> int:
        """Tokens of the longer of the two sequences."""
        return len(self.prompt_ids) + max(len(self.chosen.token_ids), len(self.rejected.token_ids))

    def to_row(self) -> dict[str, Any]:
        """One JSON object. ``prompt``, ``chosen`` and ``rejected`` are texts, as other trainers read them."""
        row = {"prompt_id": self.prompt_id, "step": self.step, "prompt": self.prompt, "prompt_ids": self.prompt_ids}
        for name, answer in (("chosen", self.chosen), ("rejected", self.rejected)):
            row[name] = answer.text
            row |= {f"{name}_{key}": getattr(answer, key) for key in ("token_ids", "sampled", "accuracy", "reward")}
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """What `to_row` wrote.

        Raises:
            KeyError, TypeError: the row is not one of those.
        """
        chosen, rejected = _answer(row, "chosen"), _answer(row, "rejected")
        return cls(row["prompt_id"], row["step"], row["prompt"], tuple(row["prompt_ids"]), chosen, rejected)


def _answer(row: Mapping[str, Any], name: str) -> Answer:
    sampled = row[f"{name}_sampled"]
    return Answer(
        row[name],
        tuple(row[f"{name}_token_ids"]),
        None if sampled is None else tuple(sampled),
        row[f"{name}_accuracy"],
        row[f"{name}_reward"],
    )


def pairs_of(groups: Sequence[Group], step: int, seed: int, limit: int) -> list[Pair]:
    """At most ``limit`` pairs of one step, one a group at the most.

    Only groups whose raw accuracies differ have any: the chosen is drawn from the completions of the highest accuracy,
    the rejected from those of the lowest. Unscorable completions are neither. Shaping plays no part: a pair states what
    is right, not what is short. Which groups and which completions is a function of ``seed`` alone.
    """
    stream = np.random.default_rng(derive(seed, "pairs"))
    informative = [group for group in groups if group.informative]
    drawn = stream.permutation(len(informative))[:limit]
    return [_pair(informative[int(i)], step, stream) for i in sorted(drawn)]


def _pair(group: Group, step: int, stream: np.random.Generator) -> Pair:
    best, worst = max(group.accuracies), min(group.accuracies)

    def draw(accuracy: float) -> Answer:
        found = [(c, s) for c, s in zip(group.completions, group.scores, strict=True) if s.accuracy == accuracy]
        return _as_answer(*found[int(stream.integers(len(found)))])

    return Pair(group.prompt.id, step, group.prompt.text, group.prompt_ids, draw(best), draw(worst))


def _as_answer(completion: Completion, score: Score) -> Answer:
    return Answer(completion.text, completion.token_ids, completion.sampled, score.accuracy, score.reward)
