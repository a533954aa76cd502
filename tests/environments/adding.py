"""A tool for the library verifiers: a server adds, which the policy asks before it answers."""

from __future__ import annotations

from collections.abc import Iterator

import verifiers.v1 as vf


class Sum(vf.TaskData):
    answer: str


class Adding(vf.Task[Sum]):
    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == self.data.answer)

    @vf.metric
    async def asked(self, trace: vf.Trace) -> float:
        return float(len(trace.tool_messages))


class Adder(vf.Toolset[vf.SharedToolsetConfig]):
    TOOL_PREFIX = "sums"

    @vf.tool
    async def add(self, a: int, b: int) -> str:
        """Add two whole numbers."""
        return str(a + b)


class AddingTasks(vf.Taskset[Adding, vf.TasksetConfig]):
    def load(self) -> Iterator[Adding]:
        for number in range(20):
            yield Adding(Sum(prompt=f"{number}+7=", answer=str(number + 7)), self.config.task)

    @classmethod
    def toolsets(cls, config: vf.TasksetConfig) -> list[vf.Toolset]:
        return [Adder(vf.SharedToolsetConfig())]


__all__ = ["AddingTasks"]

if __name__ == "__main__":
    Adder.run()
