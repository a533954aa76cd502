"""The seam between the loop and the choice of prompts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from components.files import sha256_bytes
from components.scheduling.checks import pack_marks, unpack_marks
from components.seeds import derive
from components.types import Group, Prompt

State = dict[str, Any]


class Schedule(ABC):
    """Chooses the prompts of each draw and learns from how they went.

    Its state is plain JSON; prompts in it are positions, so it holds a digest of their ids and fits no others.
    """

    def __init__(self, prompts: Sequence[Prompt], seed: int) -> None:
        self.prompts, self._seed, self._forks = tuple(prompts), seed, 0
        self._place = {prompt.id: place for place, prompt in enumerate(self.prompts)}
        if not self.prompts or len(self._place) < len(self.prompts):
            raise ValueError("a schedule needs prompts, each with an id of its own")
        self._digest = sha256_bytes("\n".join(self._place).encode())
        self._seen = np.zeros(len(self.prompts), bool)

    @abstractmethod
    def next(self, count: int) -> list[Prompt]:
        """The next ``count`` prompts, or fewer where a schedule skips some. Every draw comes through here, refills
        included."""

    def fork(self, number: int) -> None:
        """Draw otherwise from now on: what comes next is a function of ``number`` too. 0 is as if never called.

        A run that goes back to an earlier state would meet the very prompts again that it has just failed on.
        """
        self._forks = number

    def stream(self, *purpose: str | int) -> int:
        """The seed of one draw."""
        return derive(self._seed, *purpose, *([self._forks] if self._forks else []))

    def observe(self, groups: Sequence[Group]) -> None:
        """How the prompts of the last draw went; unscorable completions do not count."""
        self._seen[[self._place[group.prompt.id] for group in groups]] = True

    def worthwhile(self, groups: Sequence[Group], size: int) -> list[bool]:
        """Whether each of the groups, begun with fewer completions, is to be completed to ``size``. One whose
        completions differ is; by default no other is."""
        return [group.informative for group in groups]

    def metrics(self) -> dict[str, float]:
        """Signals for the step record, without prefix."""
        return {"coverage": float(np.count_nonzero(self._seen)) / len(self.prompts)}

    def state_dict(self) -> State:
        """Everything that `load_state_dict` needs to go on as if nothing had happened."""
        return {"prompts": self._digest, "seen": pack_marks(self._seen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved state.

        Raises:
            ValueError: a field is missing, unknown or impossible, or the state is that of other prompts.
        """
        check_fields(state, self.state_dict())
        if state["prompts"] != self._digest:
            raise ValueError("state does not fit: it is that of other prompts, or of another order of them")
        self._seen = unpack_marks(state, "seen", len(self.prompts))


def check_fields(state: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse a state that was written by something else."""
    if state.keys() != expected.keys():
        raise ValueError(f"state does not fit: missing or unknown fields {sorted(state.keys() ^ expected.keys())}")
