"""The policy's side of all episodes that are played at one time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.environments.conversation import Rewritten, essence, further_ids, opening_ids, tool_calls
from components.errors import InputError
from components.policy import Policy
from components.rollout.base import Engine, Sampling
from components.rollout.turns import Row, batches, longest
from components.seeds import derive
from components.types import Completion

Message = dict[str, Any]


@dataclass
class Conversation:
    """One agent of one episode: its tokens, and every message so far, the policy's own included."""

    policy: Policy
    limit: int
    row: Row = field(init=False)
    said: list[Message] = field(default_factory=list)
    tools: list[Message] = field(default_factory=list)
    turns: int = 0

    def hear(self, request: Mapping[str, Any]) -> Row:
        """Take in what was said since the policy wrote.

        Raises:
            Rewritten: the request leaves out or changes what was said before, or offers other tools.
        """
        messages, tools, known = list(request["messages"]), list(request["tools"]), len(self.said)
        if not known:
            self.row, self.tools = Row(opening_ids(self.policy, messages, tools), self.limit), tools
        elif len(messages) <= known or [*map(essence, messages[:known])] != [*map(essence, self.said)]:
            raise Rewritten("the environment changed what was said before, and one completion cannot be both")
        elif tools != self.tools:
            raise Rewritten("the environment changed the tools that it offers")
        elif self.row.room:
            ids = further_ids(self.policy, messages[known:])
            self.row.write(ids, [0.0] * len(ids), sampled=False)
        self.said = messages
        return self.row

    def speak(self, turn: Completion) -> Message:
        """Add what the policy wrote; returns what the environment gets to see of it."""
        read, room = len(self.row.prompt) + len(self.row.ids), self.row.room
        ended = self.row.take(turn)
        if ended:
            self.row.finish = turn.finish_reason
        fits = len(turn.token_ids) <= room
        text, calls = tool_calls(turn.text if fits else self.policy.decode(turn.token_ids[:room]), self.turns)
        self.said.append({"role": "assistant", "content": text, "tool_calls": [{"function": call} for call in calls]})
        self.turns += 1
        written = len(self.row.prompt) + len(self.row.ids) - read
        finish = ("tool_calls" if calls else "stop") if ended else "length"
        return {"text": text, "calls": calls if ended else [], "finish": finish, "tokens": [read, written]}


class Players:
    """Answers the requests of episodes, all that wait at one time; ``sampling.n`` episodes in a row are a group."""

    def __init__(self, policy: Policy, engine: Engine, sampling: Sampling) -> None:
        self._policy, self._engine, self._sampling = policy, engine, sampling
        self._conversations: dict[tuple[int, str], Conversation] = {}
        self.refused: dict[int, str] = {}
        """Why an episode cannot be trained on, by its number."""
        self._exchanges = 0

    def conversation(self, episode: int, session: str | None) -> Conversation | None:
        """That of one agent; of the episode's first agent where none is named."""
        own = [
            one for (number, name), one in self._conversations.items() if number == episode and session in (None, name)
        ]
        return own[0] if own else None

    def answer(self, requests: Sequence[Message]) -> list[Message]:
        """One answer per request, in order."""
        replies: list[Message] = [{} for _ in requests]
        going: list[tuple[int, Conversation]] = []
        for place, one in enumerate(requests):
            key = one["episode"], one["session"]
            own = self._conversations.setdefault(key, Conversation(self._policy, self._sampling.max_new_tokens))
            try:
                row = own.hear(one)
            except Rewritten as error:
                self.refused[one["episode"]] = f"refused: {error}"
                if not own.said:  # it has no tokens
                    del self._conversations[key]
                replies[place] = {"refused": str(error)}
                continue
            self._fit(row)
            if row.room:
                going.append((place, own))
            else:
                row.finish = "length"
                replies[place] = {"full": True}
        turns = self._turns([own.row for _, own in going])
        for (place, own), turn in zip(going, turns, strict=True):
            replies[place] = own.speak(turn)
        self._exchanges += 1
        return replies

    def _turns(self, rows: Sequence[Row]) -> list[Completion]:
        """What the policy writes next in every row."""
        if not rows:
            return []
        n = self._sampling.n
        groups = [rows[i : i + n] for i in range(0, len(rows), n)]
        fresh = not self._exchanges and all(not row.ids for row in rows)
        if fresh and all(len(group) == n and len({row.prompt for row in group}) == 1 for group in groups):
            first = self._engine.generate([group[0].prompt for group in groups], self._sampling)
            return [completion for group in first for completion in group]
        written: dict[int, Completion] = {}
        for part, batch in enumerate(batches(rows, longest(self._policy, self._engine))):
            seed = derive(self._sampling.seed, "turn", self._exchanges, part)
            once = replace(self._sampling, n=1, max_new_tokens=batch[0].room, seed=seed)
            made = self._engine.generate([(*row.prompt, *row.ids) for row in batch], once)
            written |= {id(row): turn for row, (turn,) in zip(batch, made, strict=True)}
        return [written[id(row)] for row in rows]

    def _fit(self, row: Row) -> None:
        """Lower the limit of a row to the positions that there are for it.

        Raises:
            InputError: they are too few for one of the first openings.
        """
        positions = longest(self._policy, self._engine)
        if positions is None or len(row.prompt) + row.limit <= positions:
            return
        if not self._exchanges:
            raise InputError(
                f"an opening of {len(row.prompt)} tokens and {row.limit} further ones exceed the {positions} positions "
                "of the model or of its servers",
                where="rollout.max_new_tokens",
                how="lower it, use a shorter opening, or a longer model",
            )
        row.limit = max(len(row.ids), positions - len(row.prompt))
