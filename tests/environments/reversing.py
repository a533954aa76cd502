"""The smallest environment for the library verifiers, of one turn: write a word backwards."""

from __future__ import annotations

from collections.abc import Iterator

import verifiers.v1 as vf


class Word(vf.TaskData):
    answer: str


class Reversing(vf.Task[Word]):
    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == self.data.answer)

    @vf.reward(weight=0.25)
    async def alike(self, trace: vf.Trace) -> float:
        """The share of characters in their places."""
        same = sum(a == b for a, b in zip(trace.last_reply, self.data.answer, strict=False))
        return same / len(self.data.answer)

    @vf.metric
    async def characters(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply))


class ReversingTasks(vf.Taskset[Reversing, vf.TasksetConfig]):
    def load(self) -> Iterator[Reversing]:
        for number in range(100, 200):
            word = f"{number * 37 % 1000:03}{number}"
            yield Reversing(
                Word(prompt=f"{word} backwards", system_prompt="Answer with digits.", answer=word[::-1]),
                self.config.task,
            )


__all__ = ["ReversingTasks"]
