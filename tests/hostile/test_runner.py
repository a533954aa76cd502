"""The server of cases sees what must not happen, and says what it was."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from components.processes.living import lives
from tests.hostile import cases, runner
from tests.hostile.cases import Case, chosen, seeded
from tests.hostile.mutations import broken, replacements, reshaped
from tests.hostile.runner import Server

SPAWNS = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"


@pytest.mark.parametrize(
    ("code", "faults"),
    [
        ("print('done')", []),
        ("print('no'); raise SystemExit(3)", []),
        ("raise SystemExit(2)", ["no word about why"]),
        ("raise SystemExit('text')", ["exit code 1"]),
        ("1 / 0", ["exit code 1", "a traceback"]),
        ("import traceback\ntry: 1 / 0\nexcept Exception: traceback.print_exc()", ["a traceback"]),
        ("import os; print('x', flush=True); os.abort()", ["exit code -6"]),
        ("print(len(bytearray(300 * 2**20)))", ["MiB"]),
        ("bytearray(9 * 2**30)", ["exit code 1", "a traceback"]),
        ("import sys; sys.stdin.read()", []),
    ],
)
def test_the_end_of_a_command_is_judged(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, faults: list[str]
) -> None:
    monkeypatch.setattr(cases, "MEMORY", 200 * 2**20)
    found = server.end_of(Case("one", (code,), program="python"), folder).faults()
    assert [one if one in fault else fault for one, fault in zip(faults, found, strict=True)] == faults


def test_one_that_takes_too_long_is_ended_with_all_that_it_started(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SECONDS", 0.5)
    end = server.end_of(Case("one", (SPAWNS,), program="python"), folder)
    assert end.late and end.faults()[0].startswith("no end within")
    assert "<string>" in end.said, "where it was"
    started, until = int(end.said.splitlines()[0]), time.monotonic() + 10
    while lives(started) and time.monotonic() < until:
        time.sleep(0.05)  # SIGKILL has been sent: a loaded machine delivers it a little later
    assert not lives(started)


def test_a_case_changes_nothing_for_the_next_one(server: Server, folder: Path) -> None:
    server.end_of(Case("one", ("import os, json; os.environ['X'] = 'y'; json.x = 1",), program="python"), folder)
    code = "import os, json; print(os.environ.get('X'), hasattr(json, 'x'), os.getcwd())"
    assert server.end_of(Case("two", (code,), program="python"), folder).said == f"None False {folder}\n"
    assert "X" not in os.environ


def test_mutations_are_the_same_every_time_and_none_is_the_original() -> None:
    tree = {"a": {"b": 1, "c": [1, {"d": "x"}]}, "e": None}

    def made() -> list[tuple[str, object]]:
        trees = [*replacements(tree, seeded(1), 4), *reshaped(tree, seeded(1), 5)]
        return [*((name, repr(make())) for name, make in trees), *broken(b"some bytes 123", seeded(1), 40)]

    assert made() == made()
    assert not [one for one in made() if one[1] in (repr(tree), b"some bytes 123")]


def test_some_cases_are_quick_and_two_of_one_name_are_a_mistake() -> None:
    many = [Case(str(number), ()) for number in range(100)]
    quick = [one for one in chosen(many, 10, {}) if not one.marks]
    assert len(quick) == 10
    with pytest.raises(AssertionError):
        chosen([*many, Case("7", ())], 10, {})
