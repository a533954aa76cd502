"""The seam between the loop and the choice of prompts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from components.types import Group, Prompt

State = dict[str, Any]


class Schedule(ABC):
    """Chooses the prompts of each draw and learns from how they went. Its state is plain JSON."""

    def __init__(self, prompts: Sequence[Prompt]) -> None:
        self.prompts = tuple(prompts)
        self._seen: set[str] = set()

    @abstractmethod
    def next(self, count: int) -> list[Prompt]:
        """The next ``count`` prompts. Every draw of a run comes through here, refills included."""

    def observe(self, groups: Sequence[Group]) -> None:
        """How the prompts of the last draw went; unscorable completions do not count."""
        self._seen.update(group.prompt.id for group in groups)

    def metrics(self) -> dict[str, float]:
        """Signals for the step record, without prefix."""
        return {"coverage": len(self._seen) / len(self.prompts)}

    def state_dict(self) -> State:
        """Everything that `load_state_dict` needs to go on as if nothing had happened."""
        return {"seen": sorted(self._seen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved state.

        Raises:
            ValueError: a field is missing or unknown.
        """
        check_fields(state, self.state_dict())
        self._seen = set(state["seen"])


def check_fields(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse a state that was written by something else."""
    if state.keys() != expected.keys():
        raise ValueError(f"state does not fit: missing or unknown fields {sorted(state.keys() ^ expected.keys())}")
