"""The process in which one answer's code runs. It ends in `run`."""

from __future__ import annotations

import ast
import contextlib
import math
import os
import resource
import tempfile
from typing import Any, NamedTuple, NoReturn

from components.rewards.seccomp import refuse_all_but_thinking

RESULTS, TESTS = 3, 4
"""Handles: where values go, and where the tests come from once the code has been read."""
MAX_TESTS_BYTES = 1 << 20


class Limits(NamedTuple):
    """What one answer's code may use: wall and processor time, and address space."""

    seconds: float
    memory_mb: int


def run(source: str, limits: Limits, results: int, tests: int) -> NoReturn:
    """Run the code, then evaluate each expression and report ``secret number value`` on a line.

    Args:
        results: handle to write to; it becomes `RESULTS`.
        tests: handle to read from; it becomes `TESTS`.
    """
    try:
        _confine(limits, results, tests)
        _work(source)
    finally:  # whatever the code did to reach this line, and without running what it left behind
        os._exit(0)


def _confine(limits: Limits, results: int, tests: int) -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)  # an empty place that nothing can be put into, and nobody has to tidy up
    os.environ.clear()
    moved = os.dup(results), os.dup(tests)  # out of each other's way
    os.dup2(moved[0], RESULTS)
    os.dup2(moved[1], TESTS)
    null = os.open(os.devnull, os.O_RDWR)
    for handle in range(3):
        os.dup2(null, handle)
    os.closerange(TESTS + 1, 256)
    for limit, value in (
        (resource.RLIMIT_CPU, math.ceil(limits.seconds)),
        (resource.RLIMIT_AS, limits.memory_mb * 2**20),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 32),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    refuse_all_but_thinking()


def _work(source: str) -> None:
    namespace: dict[str, Any] = {"__name__": "answer", "__builtins__": __builtins__}
    with contextlib.suppress(BaseException):  # what was defined before it raised can still be tested
        exec(compile(source, "<answer>", "exec"), namespace)
    secret, setup, *expressions = ast.literal_eval(_read_all())
    with contextlib.suppress(BaseException):
        exec(compile(setup, "<tests>", "exec"), namespace)
    for number, expression in enumerate(expressions):
        with contextlib.suppress(BaseException):
            value = eval(compile(expression, "<test>", "eval"), namespace)
            os.write(RESULTS, f"{secret} {number} {plain(value)!r}\n".encode("ascii", "backslashreplace"))


def _read_all() -> str:
    data = b""
    while block := os.read(TESTS, MAX_TESTS_BYTES):
        data += block
    return data.decode("ascii")


def plain(value: Any) -> Any:
    """The same value of built-in types, whose text is a literal. What has none raises TypeError."""
    if value is None or isinstance(value, bool):
        return value
    kind: Any
    for kind in (int, str, bytes, complex):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, float):
        return _Infinite(value) if math.isinf(value) else float(value)
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    for many in (list, tuple, set):
        if isinstance(value, many):
            return many(plain(item) for item in value)
    if isinstance(value, frozenset):
        return {plain(item) for item in value}
    raise TypeError(f"{type(value).__name__} is no plain value")


class _Infinite(float):
    def __repr__(self) -> str:
        return "1e999" if self > 0 else "-1e999"
