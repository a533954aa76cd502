"""Completions in turns: the policy writes up to a call, the tool answers, the policy goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from components.errors import InputError
from components.policy import Policy
from components.policy.routing import Routes, joined
from components.policy.weights import Weights
from components.rollout.base import Engine, Sampling
from components.seeds import derive
from components.tools import Tool
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


class ToolLoop(Engine):
    """Any engine with a tool in between.

    What the policy sampled is never tokenised again: an observation is encoded by itself and its ids are appended,
    with log-probability 0 and ``sampled`` False. Every turn computes its prompt and all turns before it again.
    ``max_new_tokens`` bounds all that follows the prompt, observations included, because that is what memory and the
    model's positions have to hold. A completion that calls once more than ``max_turns`` ends there as too long.
    """

    def __init__(self, engine: Engine, tool: Tool, policy: Policy, max_turns: int) -> None:
        self._engine, self._tool, self._policy, self._max_turns = engine, tool, policy, max_turns
        special = set(policy.tokenizer.all_special_ids)
        vocabulary = policy.tokenizer.get_vocab().items()
        self._stop = frozenset(i for text, i in vocabulary if text.endswith(tool.ending) and i not in special)
        if not self._stop:
            raise InputError(
                f"no token of the vocabulary ends with {tool.ending!r}, so no call could be noticed",
                where="rollout.tool",
                how="use a policy whose tokenizer has one",
            )

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        self._engine.load_weights(weights)

    def keep(self, weights: Weights) -> Weights:
        return self._engine.keep(weights)

    def rest(self) -> bool:
        return self._engine.rest()

    def exclude(self, server: int) -> bool:
        return self._engine.exclude(server)

    def cancel(self) -> None:
        self._engine.cancel()

    def close(self) -> None:
        self._engine.close()

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        limit, n = sampling.max_new_tokens, sampling.n
        rows = [Row(tuple(prompt), limit) for prompt in prompts for _ in range(n)]
        with_stops = replace(sampling, stop=self._stop.union(sampling.stop))
        first = self._engine.generate(prompts, with_stops)
        self._read(rows, [completion for group in first for completion in group], sampling)
        turn = 1
        while going := [row for row in rows if row.finish is None]:
            for part, batch in enumerate(self._batches(going)):
                seed = derive(sampling.seed, "turn", turn, part)
                once = replace(with_stops, n=1, max_new_tokens=batch[0].room, seed=seed)
                written = self._engine.generate([(*row.prompt, *row.ids) for row in batch], once)
                self._read(batch, [completion for (completion,) in written], sampling)
            turn += 1
        done = [self._completion(row) for row in rows]
        return [tuple(done[i : i + n]) for i in range(0, len(done), n)]

    def _batches(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Rows that go on together, the one with most room first.

        All of them get that one's limit and what is too much is cut off afterwards, so a row may join only where the
        model has positions for it.
        """
        positions = self._policy.max_positions
        batches: list[list[Row]] = []
        for row in sorted(rows, key=lambda row: -row.room):
            last = batches[-1] if batches else None
            if last and (positions is None or len(row.prompt) + len(row.ids) + last[0].room <= positions):
                last.append(row)
            else:
                batches.append([row])
        return batches

    def _read(self, rows: Sequence[Row], turns: Sequence[Completion], sampling: Sampling) -> None:
        """Append what the policy wrote to every row, and the tool's answer where it called."""
        for row, turn in zip(rows, turns, strict=True):
            whole = len(turn.token_ids) <= row.room
            row.write(turn.token_ids, turn.logprobs, sampled=True)
            row.routes = joined(row.routes, turn.routes)
            row.servers.add(turn.server)
            if not whole or turn.finish_reason == "length":
                continue
            if turn.finish_reason == "stop" or turn.token_ids[-1] in sampling.stop:
                row.finish = turn.finish_reason
            else:
                self._answer(row)

    def _answer(self, row: Row) -> None:
        observation = self._tool.observe(self._policy.decode(tuple(row.ids)))
        if observation is None:
            return
        if row.calls == self._max_turns:
            row.finish = "length"
            return
        ids = self._policy.tokenizer.encode(observation, add_special_tokens=False)
        row.write(ids, [0.0] * len(ids), sampled=False)
        row.calls += 1

    def _completion(self, row: Row) -> Completion:
        ids = tuple(row.ids)
        finish = row.finish or "length"
        text = self._policy.decode(ids if finish == "length" else ids[:-1])
        sampled = None if all(row.sampled) else tuple(row.sampled)
        routes = None if row.routes is None else row.routes[: len(row.prompt) + len(ids) - 1]
        server = min(row.servers) if len(row.servers) == 1 else -1  # of several none is to blame for the whole
        return Completion(ids, tuple(row.logprobs), finish, text, sampled=sampled, routes=routes, server=server)
