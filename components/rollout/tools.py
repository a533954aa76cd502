"""Completions in turns: the policy writes up to a call, the tool answers, the policy goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from components.errors import InputError
from components.policy import Policy
from components.policy.weights import Weights
from components.rollout.base import Engine, Sampling
from components.rollout.turns import Row, batches, longest
from components.seeds import derive
from components.tools import Tool
from components.types import Completion


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

    @property
    def max_positions(self) -> int | None:
        return self._engine.max_positions

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
            for part, batch in enumerate(batches(going, longest(self._policy, self._engine))):
                seed = derive(sampling.seed, "turn", turn, part)
                once = replace(with_stops, n=1, max_new_tokens=batch[0].room, seed=seed)
                written = self._engine.generate([(*row.prompt, *row.ids) for row in batch], once)
                self._read(batch, [completion for (completion,) in written], sampling)
            turn += 1
        done = [row.completion(self._policy) for row in rows]
        return [tuple(done[i : i + n]) for i in range(0, len(done), n)]

    def _read(self, rows: Sequence[Row], turns: Sequence[Completion], sampling: Sampling) -> None:
        """Append what the policy wrote to every row, and the tool's answer where it called."""
        for row, turn in zip(rows, turns, strict=True):
            if not row.take(turn):
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
        ids = self._policy.encode_text(observation)
        row.write(ids, [0.0] * len(ids), sampled=False)
        row.calls += 1
