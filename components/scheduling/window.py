"""The boundary window of one cluster: which positions of its easy-to-hard order are in play (2606.22305)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

Move = Literal["adjacent", "outside"]
EASIER, STAY, HARDER = -1, 0, 1


def direction(success: float, band: float) -> int:
    """Where a prompt's slot moves: too easy -> harder, too hard -> easier, near one half -> it stays."""
    if abs(success - 0.5) <= band:
        return STAY
    return HARDER if success > 0.5 else EASIER


def shift(window: Sequence[int], directions: Mapping[int, int], size: int, move: Move) -> list[int]:
    """The window after one visit, sorted.

    Args:
        window: distinct positions in ``[0, size)``.
        directions: position -> `EASIER`, `STAY` or `HARDER`; positions without an entry stay.
        size: number of positions in the cluster.
        move: ``adjacent`` goes one slot (the authors' code), ``outside`` to the nearest free position beyond the
            window (one slot where there is none).

    Stayers keep their slots; slots that become easier move first, in ascending order, then those that become harder,
    in descending order. A taken target gives the nearest free one, the wanted direction first.
    """
    if len(window) >= size:
        return sorted(window)
    moving = {step: sorted(p for p in window if directions.get(p, STAY) == step) for step in (EASIER, HARDER)}
    taken = {p for p in window if directions.get(p, STAY) == STAY}
    beyond = {EASIER: range(min(window) - 1, -1, -1), HARDER: range(max(window) + 1, size)}
    for step, positions in ((EASIER, moving[EASIER]), (HARDER, moving[HARDER][::-1])):
        reach = beyond[step] if move == "outside" else ()
        for position in positions:
            wanted = min(max(position + step, 0), size - 1)
            taken.add(next((p for p in reach if p not in taken), _nearest_free(wanted, step, taken, size)))
    return sorted(taken)


def _nearest_free(wanted: int, step: int, taken: set[int], size: int) -> int:
    for distance in range(size):
        for candidate in (wanted + step * distance, wanted - step * distance):
            if 0 <= candidate < size and candidate not in taken:
                return candidate
    raise AssertionError("a window smaller than its cluster always has a free slot")
