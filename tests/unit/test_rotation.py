"""Which tests continuous integration runs after `make test`."""

from __future__ import annotations

import sys
import time

import pytest

from tests import rotation

PASSES, FAILS, HANGS = ([sys.executable, "-c", code] for code in ("", "exit(1)", "import time; time.sleep(60)"))
FILES = [f"tests/unit/test_{n}.py" for n in range(20)]


def named(command: tuple[str, ...]) -> list[str]:
    return [argument for argument in command if argument.endswith(".py")]


@pytest.mark.parametrize(("turn", "first"), [(0, 0), (1, 6), (2, 13), (3, 0)])
def test_each_third_of_the_slow_files_comes_first_in_its_turn_and_none_is_left_out(turn: int, first: int) -> None:
    commands = list(rotation.slow(FILES, turn))
    assert named(commands[0])[0] == FILES[first]
    assert sorted(name for command in commands for name in named(command)) == sorted(FILES)


def test_each_tier_has_every_third_commit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(rotation, "_slow_files", lambda: FILES)
    monkeypatch.setattr(rotation, "run", lambda command, end: 0)
    for number in (9, 10, 11):
        monkeypatch.setattr(rotation, "_output", lambda *command, number=number: str(number))
        assert rotation.main(60) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "tier slow",
        "tier served",
        "tier vllm",
    ]


@pytest.mark.parametrize(("again", "code"), [(PASSES, 0), (FAILS, 1)])
def test_a_failure_counts_where_it_repeats(again: list[str], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "PYTEST", again)
    assert rotation.run(FAILS, time.monotonic() + 60) == code


def test_what_takes_too_long_is_cut_off() -> None:
    begin = time.monotonic()
    assert rotation.run(HANGS, begin + 0.2) == rotation.CUT_OFF
    assert time.monotonic() - begin < 30
