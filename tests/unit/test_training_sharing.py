"""Server and learner that take turns on one GPU, as the loop sees them: which of them has the memory, and when."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from factories import settings
from training_runs import judged_by_parity, watched

from components.errors import Stopped
from components.learner.base import Learner
from components.learner.torch_learner import TorchLearner
from components.processes.stopping import STOPPING
from components.rollout import Engine, Sampling
from components.types import Completion

__all__ = ["judged_by_parity"]  # of every test here

ROUND = ["sleep", "update", "moments to the host", "hand-over"]
BACK = {"sick": {"when": "step > 2.5 and step < 3.5 and progress >= 0", "level": "rollback", "action": [], "why": "w"}}


class Sleeping(Engine):
    """An engine that gives its memory up, and cannot sample until it has been given weights."""

    def __init__(self, inner: Engine, events: list[str]) -> None:
        self._inner, self._events, self.asleep = inner, events, False

    def generate(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[tuple[Completion, ...]]:
        assert not self.asleep, f"sampled while asleep: {self._events}"
        return self._inner.generate(prompts, sampling)

    def load_weights(self, weights: Mapping[str, Any]) -> None:
        self._events.append("hand-over")
        self._inner.load_weights(weights)
        self.asleep = False

    def rest(self) -> bool:
        self._events.append("sleep")
        self.asleep = True
        return True


def noting(monkeypatch: pytest.MonkeyPatch, events: list[str]) -> None:
    """Note what the learner does."""

    def note(name: str, event: str) -> None:
        original = getattr(TorchLearner, name)

        def noted(self: TorchLearner, *args: Any) -> Any:
            events.append(event)
            return original(self, *args)

        monkeypatch.setattr(TorchLearner, name, noted)

    for name, event in (("step", "update"), ("rest", "moments to the host"), ("load", "load")):
        note(name, event)


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, **sections: Any) -> list[str]:
    events: list[str] = []
    noting(monkeypatch, events)
    watched(tmp_path, settings(**sections), wrap_engine=lambda engine: Sleeping(engine, events))
    return events


def test_the_server_has_the_memory_while_it_samples_and_the_learner_while_it_updates(monkeypatch, tmp_path):
    events = run(monkeypatch, tmp_path, train={"steps": 3, "eval_every": 1})
    assert events == 3 * ROUND


def test_a_run_goes_back_in_the_same_order(monkeypatch, tmp_path):
    events = run(monkeypatch, tmp_path, train={"steps": 4, "checkpoint_every": 2}, health={"rules": BACK})
    back = events.index("load")
    assert events[back - 1 : back + 3] == ["sleep", "load", "moments to the host", "hand-over"]
    assert [*events[: back - 1], *events[back + 3 :]] == events.count("update") * ROUND


def test_it_learns_what_a_run_learns_that_shares_nothing(monkeypatch, tmp_path):
    chosen = settings(train={"steps": 3})
    _, alone = watched(tmp_path / "alone", chosen)
    _, shared = watched(tmp_path / "shared", chosen, wrap_engine=lambda engine: Sleeping(engine, []))
    assert [record.signals for record in shared] == [record.signals for record in alone]


def test_an_engine_that_gives_nothing_up_leaves_the_moments_where_they_are(monkeypatch, tmp_path):
    events: list[str] = []
    noting(monkeypatch, events)
    watched(tmp_path, settings(train={"steps": 2}))
    assert events == ["update", "update"]


@pytest.mark.parametrize("place", ["going to sleep", "asleep"])
def test_a_run_that_is_asked_to_stop_leaves_its_checkpoint(monkeypatch, tmp_path, place):
    events: list[str] = []

    class Interrupted(Sleeping):
        def rest(self) -> bool:
            if place == "going to sleep":
                os.kill(os.getpid(), signal.SIGTERM)
            return super().rest()

    def step(self: Learner, *args: Any) -> Any:
        if place == "asleep":
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, *args)

    original = TorchLearner.step
    monkeypatch.setattr(TorchLearner, "step", step)
    done = 0 if place == "going to sleep" else 1
    with (
        STOPPING.on_signal(),
        STOPPING.defer_signal(),
        pytest.raises(Stopped, match=f"checkpoint of step {done} is whole"),
    ):
        watched(tmp_path, settings(train={"steps": 3}), wrap_engine=lambda engine: Interrupted(engine, events))
    assert "hand-over" not in events, "nothing is sampled any more"
