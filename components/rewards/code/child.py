"""The process in which one answer's code runs. It ends in `run`."""

from __future__ import annotations

import ast
import contextlib
import math
import os
import resource
import sys
from types import CodeType, ModuleType
from typing import Any, NamedTuple, NoReturn

from components.rewards.seccomp import install_compute_only_filter

RESULTS, TESTS = 3, 4
"""Handles: where values go, and where the tests come from once the code has been read."""
MAX_TESTS_BYTES = 1 << 20
READY, FAILED = b"+", b"!"
"""The first byte of what a child reports: it is confined and begins to run the code; or it is not, for this reason."""


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
        _only(results, tests)
        try:
            _confine(limits)
        except Exception as error:
            os.write(RESULTS, FAILED + f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace"))
        else:
            os.write(RESULTS, READY)
            _work(source)
    finally:  # whatever the code did to reach this line, and without running what it left behind
        os._exit(0)


def _only(results: int, tests: int) -> None:
    """Nothing else is open, but for the null device that the template has as its standard streams."""
    moved = os.dup(results), os.dup(tests)  # out of each other's way
    os.dup2(moved[0], RESULTS)
    os.dup2(moved[1], TESTS)
    os.closerange(TESTS + 1, 256)


def _confine(limits: Limits) -> None:
    """What the template has not given up for all of its children."""
    for limit, value in (
        (resource.RLIMIT_CPU, math.ceil(limits.seconds)),
        (resource.RLIMIT_AS, limits.memory_mb * 2**20),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 32),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    install_compute_only_filter()


def _work(source: str) -> None:
    module = ModuleType("answer")
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up there
    namespace = module.__dict__
    with contextlib.suppress(BaseException):  # what was defined before it raised can still be tested
        exec(_compiled(source, "<answer>", "exec"), namespace)
    secret, setup, *expressions = ast.literal_eval(_read_all())
    with contextlib.suppress(BaseException):
        exec(_compiled(setup, "<tests>", "exec"), namespace)
    for number, expression in enumerate(expressions):
        with contextlib.suppress(BaseException):
            value = eval(_compiled(expression, "<test>", "eval"), namespace)
            os.write(RESULTS, f"{secret} {number} {plain(value)!r}\n".encode("ascii", "backslashreplace"))


def _compiled(source: str, name: str, mode: str) -> CodeType:
    """Without the ``__future__`` imports of this file."""
    found: CodeType = compile(source, name, mode, dont_inherit=True)
    return found


def _read_all() -> str:
    data = b""
    while block := os.read(TESTS, MAX_TESTS_BYTES):
        data += block
    return data.decode("ascii")


def plain(value: Any) -> Any:
    """The same value of built-in types, whose text is a literal. What has none raises TypeError."""
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()  # a scalar; an array equals no list
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
