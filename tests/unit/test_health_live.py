"""What the live line knows of a run that goes on, and that knowing it takes no longer as the run does."""

from __future__ import annotations

import pytest

from components.files import append_line
from components.health.summaries import LiveLedger, health_line
from components.health.summaries.line import SHOWN
from components.types import Change, Outcome, Response, StepRecord


def response(number: int, step: int, level: str = "warn", rule: str = "quiet") -> Response:
    changes = (Change("learner.lr", 2e-4, 1e-4),) if level == "intervene" else ()
    return Response(number, step, rule, level, level, "why", {"entropy": [0.3, None]}, changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.jsonl"


def enter(path, *entries: Response | Outcome) -> None:
    for entry in entries:
        append_line(path, entry.to_dict())


def line(live: LiveLedger, step: int) -> str:
    return health_line(StepRecord(step, {}), live.verdicts, live.ledger)


def test_where_nothing_was_ever_entered_the_run_is_healthy(path):
    live = LiveLedger(path)
    live.update(0)
    assert line(live, 0) == "healthy"


@pytest.mark.parametrize(
    ("entries", "step", "state"),
    [
        ([response(1, 3)], 3, "warned: quiet"),
        ([response(1, 3)], 3 + SHOWN, "healthy"),
        ([response(1, 3, "intervene")], 3 + 9 * SHOWN, "acted: quiet, lr x0.5"),  # open for as long as it takes
        ([response(1, 3, "intervene"), Outcome(1, 13, True)], 13, "recovered: quiet"),
        ([response(1, 3, "intervene"), Outcome(1, 13, True)], 13 + SHOWN, "healthy"),
        ([response(1, 3, "stop"), response(2, 3)], 3, "stopped: quiet"),
    ],
)
def test_a_resumed_run_shows_the_same_state(path, entries, step, state):
    live = LiveLedger(path)
    enter(path, *entries)
    live.update(step)
    resumed = LiveLedger(path)
    resumed.update(step)
    assert (line(live, step), line(resumed, step)) == (state, state)


def test_an_outcome_that_comes_much_later_belongs_to_its_response(path):
    live = LiveLedger(path)
    enter(path, response(1, 0, "intervene"))
    for step in range(50):
        live.update(step)
    enter(path, Outcome(1, 50, False))
    live.update(50)
    assert line(live, 50) == "not recovered: quiet"


def test_nothing_is_read_twice_and_little_is_kept(path):
    live = LiveLedger(path)
    for step in range(500):
        enter(path, response(step, step, "intervene" if step % 100 == 0 else "warn"), Outcome(step, step, True))
        live.update(step)
    assert len(live.ledger.responses) <= SHOWN + 1
    assert len(live.ledger.outcomes) <= SHOWN + 1
    path.write_bytes(b"x" * path.stat().st_size)  # a second look at it would be an error
    enter(path, response(500, 500))
    live.update(500)
    assert live.ledger.responses[-1].number == 500
