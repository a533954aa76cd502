"""Golden items: completions that the verifier has judged, which it is shown again in every step.

Whatever it judges, a verifier gives the same completion of the same prompt the same verdict. One that does not has
changed, or its verdicts depend on something else; neither shows in the accuracies of a policy that changes too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from components.types import Completion, Group, Prompt, Score

KEPT = 2
"""Items of a family that were right, and as many that were not; each of another prompt."""
FAMILIES = 16
"""Families that have items: those that are drawn first."""
SHOWN = 16
"""Items that are judged again in a step; each has its turn."""


@dataclass(frozen=True, slots=True)
class Item:
    """A completion of a prompt, and the accuracy that it was given first."""

    prompt: Prompt
    token_ids: tuple[int, ...]
    text: str
    accuracy: float

    @property
    def judged(self) -> tuple[Prompt, tuple[Completion]]:
        """As a scorer takes it."""
        return self.prompt, (Completion(self.token_ids, (0.0,) * len(self.token_ids), "stop", self.text),)


@dataclass(frozen=True, slots=True)
class Rejudged:
    """An item and its accuracy now."""

    item: Item
    accuracy: float

    @property
    def differs(self) -> bool:
        return self.accuracy != self.item.accuracy


class Golden:
    """The items of a run: the first completions of each family that were right, and the first that were not."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def due(self, step: int) -> list[Item]:
        """The items that a step shows."""
        count = len(self.items)
        return [self.items[(step * SHOWN + place) % count] for place in range(min(SHOWN, count))]

    def learn(self, groups: Sequence[Group]) -> None:
        """Take what is still missing from the groups of a step."""
        for group in groups:
            for completion, score in zip(group.completions, group.scores, strict=True):
                if score.accuracy is not None and self._missing(group.prompt, score.accuracy):
                    self.items.append(Item(group.prompt, completion.token_ids, completion.text, score.accuracy))

    def _missing(self, prompt: Prompt, accuracy: float) -> bool:
        families = {item.prompt.family for item in self.items}
        if prompt.family not in families and len(families) >= FAMILIES:
            return False
        family = (item for item in self.items if item.prompt.family == prompt.family)
        alike = [item.prompt.id for item in family if (item.accuracy == 1) == (accuracy == 1)]
        return len(alike) < KEPT and prompt.id not in alike

    def state_dict(self) -> list[dict[str, Any]]:
        """What a resumed run needs, as JSON values."""
        return [{**asdict(item), "prompt": item.prompt.to_dict()} for item in self.items]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Continue from `state_dict`."""
        self.items = [
            Item(Prompt(**row["prompt"]), tuple(row["token_ids"]), row["text"], row["accuracy"]) for row in state
        ]


def rejudged(items: Sequence[Item], scores: Sequence[Score]) -> list[Rejudged]:
    """What the verifier says of items now; what it cannot judge is left out."""
    both = zip(items, scores, strict=True)
    return [Rejudged(item, score.accuracy) for item, score in both if score.accuracy is not None]
