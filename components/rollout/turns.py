"""One completion that policy and others write in turns, and which of them the engine goes on with together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from components.policy import Policy
from components.policy.routing import Routes, joined
from components.rollout.base import Engine
from components.types import Completion, FinishReason

Ids = tuple[int, ...]


@dataclass
class Row:
    """One completion while it is written."""

    prompt: Ids
    limit: int
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    sampled: list[bool] = field(default_factory=list)
    calls: int = 0
    finish: FinishReason | None = None
    routes: Routes | None = None
    servers: set[int] = field(default_factory=set)  # that sampled its turns

    @property
    def room(self) -> int:
        return self.limit - len(self.ids)

    def write(self, ids: Sequence[int], logprobs: Sequence[float], sampled: bool) -> None:
        """As many tokens as there is room for; the row is finished where they fill it up."""
        ids = ids[: self.room]
        self.ids += ids
        self.logprobs += logprobs[: len(ids)]
        self.sampled += [sampled] * len(ids)
        self.finish = None if self.room else "length"

    def take(self, turn: Completion) -> bool:
        """Write what the policy wrote; returns whether the turn ended by itself and all of it found room."""
        whole = len(turn.token_ids) <= self.room
        self.write(turn.token_ids, turn.logprobs, sampled=True)
        self.routes = joined(self.routes, turn.routes)
        self.servers.add(turn.server)
        return whole and turn.finish_reason != "length"

    def completion(self, policy: Policy) -> Completion:
        """All of it as one completion."""
        ids = tuple(self.ids)
        finish = self.finish or "length"
        text = policy.decode(ids if finish == "length" else ids[:-1])
        sampled = None if all(self.sampled) else tuple(self.sampled)
        routes = None if self.routes is None else self.routes[: len(self.prompt) + len(ids) - 1]
        server = min(self.servers) if len(self.servers) == 1 else -1  # of several none is to blame for the whole
        return Completion(ids, tuple(self.logprobs), finish, text, sampled=sampled, routes=routes, server=server)


def longest(policy: Policy, engine: Engine) -> int | None:
    """Positions that a prompt and all that follows it may take; None where neither model nor engine says so."""
    known = (policy.max_positions, engine.max_positions)
    return min((one for one in known if one is not None), default=None)


def batches(rows: Sequence[Row], positions: int | None) -> list[list[Row]]:
    """Rows that go on together, the one with most room first.

    All of them get that one's limit and what is too much is cut off afterwards, so a row may join only where there are
    ``positions`` for it.
    """
    found: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: -row.room):
        last = found[-1] if found else None
        if last and (positions is None or len(row.prompt) + len(row.ids) + last[0].room <= positions):
            last.append(row)
        else:
            found.append([row])
    return found
