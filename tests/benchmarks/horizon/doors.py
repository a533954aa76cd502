"""A game of five to seven turns for the library verifiers: a way through five rooms.

The game gives the letter of the room, the player one of four doors. One door of every letter leads on; behind the
others the player is in the same room again, and a turn is lost. The only reward comes at the end: 1 if all rooms were
left within the turns, else 0.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Sequence

import verifiers.v1 as vf

ROOMS, TURNS = 5, 7
DOORS = "nesw"
LEADS_ON = {letter: random.Random(letter).choice(DOORS) for letter in string.ascii_lowercase}
KNOWN = 0.4
"""How often the player that SFT imitates knows the door; else it takes any."""


class Way(vf.TaskData):
    rooms: str
    solution: str
    """What that player says next."""


class Finding(vf.Task[Way]):
    @vf.reward
    async def found(self, trace: vf.Trace) -> float:
        return float(rooms_left(self.data.rooms, [str(said.content) for said in trace.assistant_messages]) == 0)


class Settings(vf.TasksetConfig):
    practice: bool = False
    """Positions in the middle of games, for SFT; else games from their beginning."""
    games: int = 2000
    seed: int = 0


class DoorsTasks(vf.Taskset[Finding, Settings]):
    def load(self) -> Iterator[Finding]:
        rng = random.Random(self.config.seed)
        for game in range(self.config.games):
            rooms = "".join(rng.choices(string.ascii_lowercase, k=ROOMS))
            said = f"{game} {rooms[0]}:"
            for _ in range(rng.randrange(TURNS) if self.config.practice else 0):
                door = guessed(rooms[0], rng)
                rooms = rooms[1:] if door == LEADS_ON[rooms[0]] and len(rooms) > 1 else rooms
                said += f"{door}\n{rooms[0]}:\n"
            yield Finding(Way(prompt=said, rooms=rooms, solution=guessed(rooms[0], rng)), self.config.task)


class DoorsEnv(vf.SingleAgentEnv):
    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        said: list[str] = []
        async with agents.agent.interaction(task) as talk:
            turn = await talk.turn()
            while not turn.terminated and len(said) < TURNS - 1:
                said.append(turn.last_reply)
                left = rooms_left(task.data.rooms, said)
                if not left:
                    break
                turn = await talk.turn(f"{task.data.rooms[-left]}:")


def rooms_left(rooms: str, said: Sequence[str]) -> int:
    """How many rooms there are still to leave."""
    for door in said:
        if rooms and door == LEADS_ON[rooms[0]]:
            rooms = rooms[1:]
    return len(rooms)


def guessed(room: str, rng: random.Random) -> str:
    """A door as that player would choose it."""
    return LEADS_ON[room] if rng.random() < KNOWN else rng.choice(DOORS)


__all__ = ["DoorsEnv", "DoorsTasks"]
