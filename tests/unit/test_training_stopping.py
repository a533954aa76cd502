"""A run that is stopped leaves a checkpoint, loses nothing, and gives the same results once it is resumed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from factories import settings, workspace
from training_runs import judged_by_parity, outputs, records, train

from components.config import Settings
from components.errors import PeerLost, Stopped
from components.layout import Layout
from components.learner.torch_learner import TorchLearner
from components.processes.stopping import STOPPING
from components.resume import ResumeState
from components.rollout import Collector
from components.rollout.torch_engine import TorchEngine
from components.training import loop
from components.training.run import RunState
from tests.tiers import slow_but

__all__ = ["judged_by_parity"]  # of every test here

STEPS = 5
BACK = {"sick": {"when": "step > 4.5 and step < 5.5 and progress >= 0", "level": "rollback", "action": [], "why": "w"}}
"""Goes back to the newest checkpoint that is old enough: one more of them would be another way back."""
LINES: dict[str, Callable[[], Settings]] = {
    "plain": lambda: settings(train={"steps": STEPS, "eval_every": 2, "checkpoint_every": 2}),
    "ads": lambda: settings(schedule={"kind": "ads", "window": 2, "active": 2}, train={"steps": STEPS}),
    "rolled back": lambda: settings(
        train={"steps": 7, "checkpoint_every": 3, "eval_every": 9},
        health={"rules": BACK},
        rollout={"dynamic_sampling": None},
    ),
    "ahead": lambda: settings(rollout={"asynchrony": {"max_staleness": 2}}, train={"steps": STEPS}),
}
PLACES = {
    "before a generation": (TorchEngine, "generate", False),
    "after a generation": (TorchEngine, "generate", True),
    "after a rollout": (Collector, "step", True),
    "after a step of the learner": (TorchLearner, "step", True),
    "after an update": (loop, "watch", False),
    "after a record": (RunState, "append", True),
}


@contextmanager
def signalled(monkeypatch: pytest.MonkeyPatch, place: str, times: int) -> Iterator[list[int]]:
    """SIGTERM comes when a place is reached for the n-th time; how often it was reached."""
    owner, name, after = PLACES[place]
    original, calls = getattr(owner, name), []

    def counted(*args: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == times and not after:
            os.kill(os.getpid(), signal.SIGTERM)
        found = original(*args, **more)
        if len(calls) == times and after:
            os.kill(os.getpid(), signal.SIGTERM)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, counted)
        yield calls


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, str]]:
    found: dict[str, dict[str, str]] = {}

    def of(line: str) -> dict[str, str]:
        if line not in found:
            found[line] = outputs(train(tmp_path_factory.mktemp("undisturbed"), LINES[line]()))
        return found[line]

    return of


CASES = [(line, place, times) for line in LINES for place in PLACES for times in (1, 3)]
QUICK = [
    ("plain", "before a generation", 3),
    ("ads", "after a rollout", 3),
    ("rolled back", "after an update", 3),
    ("ahead", "after a record", 3),
]


@pytest.mark.parametrize(("line", "place", "times"), slow_but(CASES, *QUICK))
def test_asked_at_any_place_it_goes_on_to_the_same_bytes(line, place, times, tmp_path, monkeypatch, undisturbed):
    workspace(tmp_path)
    with STOPPING.on_signal(), signalled(monkeypatch, place, times), pytest.raises(Stopped) as caught:
        train(tmp_path, LINES[line]())
    newest = ResumeState.__new__(ResumeState)
    newest.directory = Layout(tmp_path).state / "train"
    step, _ = newest.latest() or (None, None)
    assert caught.value.what == f"stopped on request; the checkpoint of step {step} is whole"
    assert caught.value.exit_code == 143
    assert outputs(train(tmp_path, LINES[line]())) == undisturbed(line)


def test_a_diagnosis_after_a_stop_request_samples_the_weights_of_its_step(tmp_path, monkeypatch):
    ill = {"sick": {**BACK["sick"], "part": "policy"}}
    chosen = settings(train={"steps": 7, "checkpoint_every": 3, "eval_every": 3}, health={"rules": ill})
    whole = train(tmp_path / "whole", chosen)
    found = [record for record in records(whole) if "diagnosis" in record["notes"]]
    assert len(found) == 1
    workspace(tmp_path / "stopped")
    with STOPPING.on_signal(), signalled(monkeypatch, "after a step of the learner", 6), pytest.raises(Stopped):
        train(tmp_path / "stopped", chosen)
    assert outputs(train(tmp_path / "stopped", chosen)) == outputs(whole)


def test_asked_at_every_step_in_turn_it_comes_to_the_same_end(tmp_path, monkeypatch, undisturbed):
    workspace(tmp_path)
    for _ in range(7):
        with STOPPING.on_signal(), signalled(monkeypatch, "after an update", 1), pytest.raises(Stopped):
            train(tmp_path, LINES["rolled back"]())
    assert outputs(train(tmp_path, LINES["rolled back"]())) == undisturbed("rolled back")


def test_a_step_that_is_being_sampled_is_not_finished(tmp_path, monkeypatch):
    workspace(tmp_path)
    with STOPPING.on_signal(), signalled(monkeypatch, "before a generation", 2) as calls, pytest.raises(Stopped):
        train(tmp_path, LINES["plain"]())
    assert len(calls) == 2


@pytest.mark.parametrize("when", ["before the hand-over", "in the middle of it"])
def test_servers_that_are_asked_to_end_as_well_cost_no_step(when, tmp_path, monkeypatch, undisturbed):
    workspace(tmp_path)
    step, load, updates = TorchLearner.step, TorchEngine.load_weights, list[int]()

    def update(self: TorchLearner, *args: Any) -> Any:
        found = step(self, *args)
        updates.append(1)
        if len(updates) == 3 and when == "before the hand-over":
            os.kill(os.getpid(), signal.SIGTERM)
        return found

    def hand_over(self: TorchEngine, weights: Any) -> None:
        if len(updates) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
            raise PeerLost("no inference server is left")
        load(self, weights)

    with monkeypatch.context() as patch, STOPPING.on_signal(), pytest.raises(Stopped, match="step 3 is whole"):
        patch.setattr(TorchLearner, "step", update)
        patch.setattr(TorchEngine, "load_weights", hand_over)
        train(tmp_path, LINES["plain"]())
    assert outputs(train(tmp_path, LINES["plain"]())) == undisturbed("plain")


def test_what_is_sampled_ahead_and_lost_while_it_stops_is_sampled_again(tmp_path, monkeypatch, undisturbed):
    workspace(tmp_path)
    original, calls = Collector.step, list[int]()

    def lost(self: Collector, *args: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            STOPPING.request()
            raise PeerLost("no inference server is left")
        return original(self, *args, **more)

    with (
        monkeypatch.context() as patch,
        STOPPING.on_signal(),
        pytest.raises(Stopped, match=r"is lost.*no inference server"),
    ):
        patch.setattr(Collector, "step", lost)
        train(tmp_path, LINES["ahead"]())
    assert outputs(train(tmp_path, LINES["ahead"]())) == undisturbed("ahead")


def test_a_run_that_is_writing_its_outputs_finishes(tmp_path, monkeypatch, undisturbed):
    workspace(tmp_path)
    with STOPPING.on_signal(), signalled(monkeypatch, "after a record", STEPS):
        assert outputs(train(tmp_path, LINES["plain"]())) == undisturbed("plain")
