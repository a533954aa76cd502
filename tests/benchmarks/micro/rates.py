"""Several ways of doing the same work, in turns in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

Way = Callable[[int], int]
"""Does the work of a round, by its number, and says how many tokens count."""


MORE = 4
"""Times as many rounds at most, where rounds are short."""


def in_turns(
    ways: Mapping[str, Way], rounds: int, enough: float = 0.0, warm: int = 1
) -> dict[str, dict[str, list[float]]]:
    """Seconds of processor time and tokens of every round, by way; every round begins with another way.

    Processor time, and one thread: what else runs on the machine counts less than it would by the clock. Short rounds
    vary more, so there are more of them until all together took ``enough`` seconds.
    """
    found: dict[str, dict[str, list[float]]] = {name: {"cpu_s": [], "tokens": []} for name in ways}
    names = list(ways)
    spent = 0.0
    for number in range(warm + MORE * rounds):
        if number >= warm + rounds and spent >= enough:
            break
        first = number % len(names)
        for name in names[first:] + names[:first]:
            began = time.process_time()
            tokens = ways[name](number)
            seconds = time.process_time() - began
            spent += seconds
            if number >= warm:
                found[name]["cpu_s"].append(round(seconds, 6))
                found[name]["tokens"].append(tokens)
    return found
