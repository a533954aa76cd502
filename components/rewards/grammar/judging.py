"""Right, wrong, or unscorable: what may be read in two ways, of which one is right, is neither."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache

from components.rewards.base import Refused
from components.rewards.grammar.nodes import Answer, Node, NotRead
from components.rewards.grammar.reader import read
from components.rewards.grammar.tokens import READINGS, written
from components.rewards.units import known_unit

Same = Callable[[Answer, Answer], bool]
"""Whether the second answer says what the first one says; NotRead where one of them is none for this verifier."""
_BETWEEN_DIGITS = re.compile(r"[0-9][.,][0-9]")
read_once = lru_cache(maxsize=1024)(read)


def reference(answer: str, algebra: bool, same: Same) -> Answer:
    """The reference as it is read.

    Raises:
        Refused: it is not one answer, so that nothing could be right.
    """
    try:
        found = read_once(answer, algebra)
        if found.clear and same(found, found):
            return found
        reason = "it is open to interpretation"
    except NotRead as error:
        reason = str(error)
    raise Refused(f"the reference answer {answer[:80]!r} is none that can be compared: {reason}")


def verdict(right: Answer, wanted: str, found: str, algebra: bool, same: Same) -> float:
    """1.0 or 0.0; ``right`` is how ``wanted`` is read.

    Raises:
        Refused: one of several readings of the two makes the answer right.
    """
    usual = _read(found, algebra)
    if usual is not None and _agree(same, right, usual):
        if usual.clear:
            return 1.0
        raise Refused(f"the answer {found[:80]!r} holds the right one among words that may change it")
    if any(_agree(same, right, other) for other in _others(found, usual, algebra)) or (
        usual is not None and any(_agree(same, other, usual) for other in _others(wanted, right, algebra))
    ):
        raise Refused(f"the answer {found[:80]!r} may be read in several ways, of which one is right")
    return 0.0


def _agree(same: Same, wanted: Answer, found: Answer) -> bool:
    try:
        return same(wanted, found)
    except NotRead:
        return False


def _read(text: str, algebra: bool, reading: str = "usual") -> Answer | None:
    try:
        return read_once(text, algebra, reading)
    except NotRead:
        return None


def _others(text: str, usual: Answer | None, algebra: bool) -> Iterator[Answer]:
    """Readings besides the usual one.

    A comma between digits separates items, or is the decimal comma; the base of a number or the half of the day goes
    without saying; a letter behind a number is its unit.
    """
    if _BETWEEN_DIGITS.search(text):
        for reading in READINGS[1:]:
            if (other := _read(text, algebra, reading)) is not None:
                yield other
    if usual is None:
        return
    node = usual.node
    if usual.suffix:
        yield usual._replace(suffix="")
    if node.kind == "base" and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", node.args[0]):
        with suppress(NotRead):  # it is too long
            yield usual._replace(node=written(node.args[0]))
    if node.kind == "mul" and _is_unit(node.args[-1]):
        yield usual._replace(node=node.args[0] if len(node.args) == 2 else Node("mul", node.args[:-1]))


def _is_unit(node: Node) -> bool:
    return node.kind == "symbol" and known_unit(node.args[0]) is not None
