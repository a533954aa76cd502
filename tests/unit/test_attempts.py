"""Pauses between attempts, and when there is none left."""

from __future__ import annotations

import random
import time

import pytest

from components.attempts import Attempts


@pytest.fixture(autouse=True)
def longest_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: high)


def test_pauses_double_up_to_the_longest_and_the_first_attempt_counts() -> None:
    pauses: list[float] = []
    attempts = Attempts(1.0, 5.0, most=6, sleep=pauses.append)
    while attempts.again():
        pass
    assert (attempts.made, pauses) == (6, [1.0, 2.0, 4.0, 5.0, 5.0])


def test_no_attempt_begins_after_the_time_is_up_and_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    attempts = Attempts(1.0, 60.0, seconds=10.0, sleep=pauses.append)
    assert attempts.again() and attempts.again()
    now[0] = 6.0
    assert not attempts.again()
    assert (attempts.end, pauses) == (10.0, [1.0, 2.0])


def test_what_a_server_wants_at_least_is_added() -> None:
    pauses: list[float] = []
    attempts = Attempts(1.0, 5.0, seconds=30.0, sleep=pauses.append)
    assert attempts.again(7.0)
    assert not attempts.again(60.0)
    assert pauses == [8.0]


def test_attempts_without_a_limit_go_on() -> None:
    pauses: list[float] = []
    attempts = Attempts(1.0, 5.0, sleep=pauses.append)
    assert all(attempts.again() for _ in range(5000))
    assert max(pauses) == 5.0
