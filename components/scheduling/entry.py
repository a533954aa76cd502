"""What the registry of schedules holds of each, and the contract that is tried on those from outside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from components.catalog import Declaration
from components.scheduling.base import Schedule
from components.types import Completion, Group, Prompt, Score

PROMPTS, DRAW, DRAWS, SEED = 48, 8, 3, 5


@dataclass(frozen=True)
class ScheduleEntry(Declaration):
    """``call(prompts, seed, settings)`` builds a `Schedule`; prompts come in an order of their own, by id."""

    def problems(self, settings: Any) -> list[str]:
        """Draws are of the prompts, follow the seed and what was observed, and go on from a saved state."""
        return list(contract(lambda prompts, seed: self.call(prompts, seed, settings)))


def contract(build: Callable[[Sequence[Prompt], int], Schedule]) -> Iterator[str]:
    """What a schedule breaks of it."""
    prompts = [Prompt(f"p{number:02}", f"question {number}", "1", "1") for number in range(PROMPTS)]
    one, same = build(prompts, SEED), build(prompts, SEED)
    if not isinstance(one, Schedule):
        yield f"it builds a {type(one).__name__}, not a Schedule"
        return
    drawn = _draw(one, DRAWS)
    if any(len(names) != DRAW for names in drawn):
        yield f"next({DRAW}) must return {DRAW} prompts, not {sorted({len(names) for names in drawn} - {DRAW})}"
    if unknown := {name for names in drawn for name in names} - {prompt.id for prompt in prompts}:
        yield f"it draws prompts that it was not given: {', '.join(sorted(unknown)[:3])}"
        return
    if _draw(same, DRAWS) != drawn:
        yield "with the same prompts, seed and observations it must draw the same prompts"
    state, restored = one.state_dict(), build(prompts, SEED)
    restored.load_state_dict(json.loads(json.dumps(state)))
    if _draw(restored, DRAWS) != _draw(one, DRAWS):
        yield "restored from its state it must draw what it would have drawn: state_dict lacks something"
    try:
        build(prompts[1:], SEED).load_state_dict(state)
    except ValueError:
        return
    yield "load_state_dict must refuse the state of other prompts with a ValueError"


def _draw(schedule: Schedule, draws: int) -> list[list[str]]:
    """The ids of so many draws, each observed with outcomes that differ."""
    found = []
    for number in range(draws):
        prompts = schedule.next(DRAW)
        schedule.observe([_group(prompt, (place + number) % 5 / 4) for place, prompt in enumerate(prompts)])
        found.append([prompt.id for prompt in prompts])
    return found


def _group(prompt: Prompt, success: float) -> Group:
    completions = tuple(Completion((1,), (-0.5,), "stop", "1") for _ in range(4))
    return Group(prompt, (1,), completions, tuple(Score(float(place < 4 * success)) for place in range(4)))
