"""What a step is checked by."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from components.config import Settings
from components.types import Completion, Group, Prompt

EXACT = 1e-6
"""Relative difference that rounding may make."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a step is checked by.

    ``settings`` are those in force: the configured ones, or what a response has set. ``ends`` are the tokens that end
    a completion, ``prompts`` the training split as it was read, by id (empty: unknown). ``agreement`` is by family the
    covariance of rewards and advantages, where those are centred rewards; ``rejudged`` are completions that were
    judged before: the prompt's id, the accuracy then, and now. ``in_force`` are checksums of the settings of an update:
    as they should be, and as the learner has them.
    """

    settings: Settings
    signals: Mapping[str, float]
    sampled: Sequence[Group]
    ends: Container[int]
    trained: Sequence[Group] = ()
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    agreement: Mapping[str, float] = field(default_factory=dict)
    rejudged: Sequence[tuple[str, float, float]] = ()
    in_force: tuple[float, float] | None = None

    @property
    def completions(self) -> Iterator[Completion]:
        """All that were sampled in the step."""
        return (completion for group in self.sampled for completion in group.completions)
