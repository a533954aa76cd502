"""A game of several turns for the library verifiers: find a hidden digit. The answer to a guess is higher or lower."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import verifiers.v1 as vf

DIGITS = 10


class HiddenDigit(vf.TaskData):
    hidden: int
    solution: str
    """A first guess, which SFT teaches: the middle."""


class HigherLower(vf.Task[HiddenDigit]):
    """The accuracy is whether the digit was found; `early` pays more for fewer guesses."""

    @vf.reward
    async def found(self, trace: vf.Trace) -> float:
        return float(self.guesses(trace)[-1:] == [self.data.hidden])

    @vf.reward(weight=0.5)
    async def early(self, trace: vf.Trace) -> float:
        return float(self.guesses(trace)[-1:] == [self.data.hidden]) / max(1, trace.num_turns)

    @vf.reward(weight=0.0)
    async def legal(self, trace: vf.Trace) -> float:
        return sum(guess is not None for guess in self.guesses(trace)) / max(1, trace.num_turns)

    def guesses(self, trace: vf.Trace) -> list[int | None]:
        return [guess(message.content or "") for message in trace.assistant_messages]


class Settings(vf.TasksetConfig):
    same_opening: bool = False
    crash_on: int = -1
    sleep_on: int = -1
    """Hidden digits on which the game breaks, or hangs."""


class HigherLowerTasks(vf.Taskset[HigherLower, Settings]):
    def load(self) -> Iterator[HigherLower]:
        for low in range(DIGITS):
            for high in range(low + 1, DIGITS):
                for hidden in range(low, high + 1):
                    prompt = "guess" if self.config.same_opening else f"{low}-{high} ({hidden * 7 % 10})"
                    middle = str((low + high) // 2)
                    yield HigherLower(HiddenDigit(prompt=prompt, hidden=hidden, solution=middle), self.config.task)


class HigherLowerEnv(vf.SingleAgentEnv):
    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        hidden, chosen = task.data.hidden, self.config.taskset
        async with agents.agent.interaction(task) as talk:
            said = await talk.turn()
            while not said.terminated and (number := guess(said.last_reply)) != hidden:
                if hidden == chosen.crash_on:
                    raise RuntimeError("this game has a bug")
                if hidden == chosen.sleep_on:
                    await asyncio.sleep(600)
                said = await talk.turn("?" if number is None else "higher" if number < hidden else "lower")


def guess(text: str) -> int | None:
    """The first digit of a message."""
    digit = re.search(r"\d", text)
    return int(digit[0]) if digit else None


__all__ = ["HigherLowerEnv", "HigherLowerTasks"]
