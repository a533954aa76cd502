"""Column arithmetic as text: ``steps#answer``.

Every column shows its carry or borrow, also when it is 0, so that the right way and the forgetful way have the same
form and differ in that one digit. A forgetful writer goes on consistently from the digit that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable

from components.tasks.turns import Forget

Operation = Callable[[int, int, Forget], str]
"""Two operands and a memory, which is called at every carry or borrow into a next column, to ``steps#answer``."""


def add(a: int, b: int, forget: Forget) -> str:
    """``47+38``: ``7+8+0=15;4+3+1=8#85``. The last column is written whole: its overflow cannot be forgotten."""
    steps, digits, carry = [], "", 0
    columns = _columns(a, b)
    for x, y in columns[:-1]:
        total = x + y + carry
        steps.append(f"{x}+{y}+{carry}={total}")
        digits = f"{total % 10}{digits}"
        carry = _kept(total // 10, forget)
    x, y = columns[-1]
    steps.append(f"{x}+{y}+{carry}={x + y + carry}")
    return _work(steps, f"{x + y + carry}{digits}")


def subtract(a: int, b: int, forget: Forget) -> str:
    """``52-18``: ``12-8-0=4;5-1-1=3#34``, for ``a >= b``; a column that borrows shows its ten."""
    steps, digits, borrow = [], "", 0
    for x, y in _columns(a, b):
        top = x + 10 if x < y + borrow else x
        steps.append(f"{top}-{y}-{borrow}={top - y - borrow}")
        digits = f"{top - y - borrow}{digits}"
        borrow = _kept(top // 10, forget)
    return _work(steps, digits)


def multiply(a: int, b: int, forget: Forget) -> str:
    """``47*6``: ``7*6+0=42;4*6+4=28#282``, for one digit ``b``."""
    steps, digits, carry = [], "", 0
    *low, high = map(int, reversed(str(a)))
    for x in low:
        total = x * b + carry
        steps.append(f"{x}*{b}+{carry}={total}")
        digits = f"{total % 10}{digits}"
        carry = _kept(total // 10, forget)
    steps.append(f"{high}*{b}+{carry}={high * b + carry}")
    return _work(steps, f"{high * b + carry}{digits}")


def remainder(a: int, b: int, forget: Forget) -> str:
    """``53%7``: ``7*7=49;13-9-0=4;5-4-1=0#4``; the high columns are written too, so a forgotten borrow shows."""
    multiple = a // b * b
    return f"{b}*{a // b}={multiple};{subtract(a, multiple, forget)}"


def larger(a: int, b: int, _forget: Forget) -> str:
    """``max(345,354)``: ``3=3;4<5#354``, from the highest digit to the first difference; nothing to forget."""
    steps = []
    for x, y in reversed(_columns(a, b)):
        steps.append(f"{x}{'=' if x == y else '<' if x < y else '>'}{y}")
        if x != y:
            break
    return _work(steps, str(max(a, b)))


def _columns(a: int, b: int) -> list[tuple[int, int]]:
    """Pairs of digits, lowest first, the shorter number filled up with zeros."""
    width = max(len(str(a)), len(str(b)))
    return [(a // 10**i % 10, b // 10**i % 10) for i in range(width)]


def _kept(carry: int, forget: Forget) -> int:
    return 0 if carry and forget() else carry


def _work(steps: list[str], answer: str) -> str:
    return f"{';'.join(steps)}#{int(answer)}"
