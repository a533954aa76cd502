"""Sampling while the learner is at work: from which weights, how far ahead, and nothing is lost or left to chance."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from factories import group, prompt, settings, workspace
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from training_runs import EVERY_STEP, assert_goes_on_from, judged_by_parity, killed, outputs, records, train, watched

from components.config import Settings
from components.data.prompts import read_prompts
from components.files import dump_line, read_jsonl
from components.layout import Layout
from components.learner.batch import build_batch
from components.rollout import Collector, Rollout
from components.scheduling import ranked_clusters
from components.stages import train as stage
from components.training.assembly import assembled
from components.training.background import worker
from components.training.pending import from_row, to_row
from components.training.run import RunState
from components.training.update import staleness
from components.types import Completion, Group, Mix, Score
from tests.benchmarks.health.faults.base import Around
from tests.tiers import slow_but

__all__ = ["judged_by_parity"]  # of every test here


def ahead(max_staleness: int = 1, **sections: Any) -> Settings:
    rollout = {**sections.pop("rollout", {}), "asynchrony": {"max_staleness": max_staleness}}
    return settings(rollout=rollout, **sections)


class Noted(Around):
    """An engine that notes which weights it samples each batch of groups from, and in which thread."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.version, self.sampled, self.threads, self.busy = 0, [], set(), threading.Lock()

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        assert self.busy.acquire(blocking=False), "weights were handed over in the middle of a generation"
        self.inner.load_weights(weights)
        self.busy.release()

    def generate(self, prompts: Any, sampling: Any) -> Any:
        assert self.busy.acquire(blocking=False), "two generations at once"
        weight = next(iter(self.inner._policy.weights().values()))
        self.sampled.append((sampling.n, weight.clone()))
        self.threads.add(threading.current_thread().name)
        found = self.inner.generate(prompts, sampling)
        self.busy.release()
        return found


def noted(root: Path, chosen: Settings) -> tuple[Noted, list[Tensor], RunState, list[Any]]:
    """The engine, the weights that every step starts from, and what the run leaves."""
    engines: list[Noted] = []
    starts: list[Tensor] = []

    def wrap_engine(engine: Any) -> Any:
        engines.append(Noted(engine))
        return engines[0]

    def wrap_learner(learner: Any) -> Any:
        step = learner.step

        def noting(*args: Any, **more: Any) -> Any:
            starts.append(next(iter(learner.weights().values())).clone())
            return step(*args, **more)

        learner.step = noting
        return learner

    state, found = watched(root, chosen, wrap_engine=wrap_engine, wrap_learner=wrap_learner)
    return engines[0], starts, state, found


ALWAYS_TRAINS: dict[str, Any] = {"rollout": {"dynamic_sampling": None}}
NO_DEV = {"eval_every": 100, "eval_samples": 2}


# From which weights


@pytest.mark.parametrize("max_staleness", [1, 4, 9])
def test_a_rollout_is_sampled_with_the_weights_of_that_many_steps_before_or_of_the_beginning(tmp_path, max_staleness):
    chosen = ahead(max_staleness, **ALWAYS_TRAINS, train={"steps": 6, **NO_DEV})
    engine, starts, _, _ = noted(tmp_path, chosen)
    sampled = [weight for n, weight in engine.sampled if n == 4]
    assert len(sampled) == len(starts) == 6
    for k, weight in enumerate(sampled):
        assert torch.equal(weight, starts[max(0, k - max_staleness)]), k
    assert len({weight.sum().item() for weight in starts}) == 6


def test_without_asynchrony_everything_is_sampled_by_the_loop_itself_from_the_present_weights(tmp_path):
    engine, starts, _, _ = noted(tmp_path, settings(**ALWAYS_TRAINS, train={"steps": 4, **NO_DEV}))
    sampled = [weight for n, weight in engine.sampled if n == 4]
    assert all(torch.equal(weight, start) for weight, start in zip(sampled, starts, strict=True))
    assert engine.threads == {"MainThread"}


def test_the_dev_split_is_always_answered_by_the_present_policy(tmp_path):
    engine, starts, _, found = noted(tmp_path, ahead(2, **ALWAYS_TRAINS, train={"steps": 6, "eval_every": 2}))
    dev = [weight for n, weight in engine.sampled if n == 2]
    assert all(torch.equal(weight, starts[2 * i]) for i, weight in enumerate(dev))
    assert ["dev_pass_at_1" in record.signals for record in found] == [True, False] * 3
    assert all(name.startswith("rollouts") for name in engine.threads)


def test_no_rollout_is_sampled_that_is_not_trained_on(tmp_path):
    engine, _, _, _ = noted(tmp_path, ahead(4, **ALWAYS_TRAINS, train={"steps": 3, **NO_DEV}))
    assert len(engine.sampled) - 1 == 3  # and the dev split of the first step


# Determined by the seed


@pytest.mark.parametrize("max_staleness", slow_but([1, 3], 3))
def test_the_same_seed_gives_the_same_bytes_however_long_the_engine_takes(tmp_path, monkeypatch, max_staleness):
    expected = outputs(train(tmp_path / "a", ahead(max_staleness)))
    step, slow = Collector.step, iter([0.2, 0.0, 0.1, 0.0, 0.05])

    def late(self: Collector, *how: Any) -> Rollout:
        time.sleep(next(slow))
        return step(self, *how)

    monkeypatch.setattr(Collector, "step", late)
    assert outputs(train(tmp_path / "b", ahead(max_staleness))) == expected
    monkeypatch.undo()
    assert outputs(train(tmp_path / "c", ahead(max_staleness + 1))) != expected


def test_the_schedule_draws_and_learns_in_the_order_of_the_steps(tmp_path):
    def drawn(root: Path, chosen: Settings) -> list[Any]:
        calls: list[Any] = []

        def wrap(schedule: Any) -> Any:
            pick, observe = schedule.next, schedule.observe

            def noting(count: int) -> Any:
                calls.append("next")
                return pick(count)

            def observing(groups: Any) -> None:
                calls.append("observe")
                observe(groups)

            schedule.next, schedule.observe = noting, observing
            return schedule

        watched(root, chosen, wrap_schedule=wrap)
        return calls

    calls = drawn(tmp_path, ahead(3))
    assert calls == ["next", "observe"] * (len(calls) // 2)


WITH_STATE: dict[str, dict[str, Any]] = {
    "one step off": {},
    "three steps off": {"max_staleness": 3},
    "difficulty pools": {"max_staleness": 2, "schedule": {"kind": "difficulty_pools"}},
    "a forecast in two stages": {
        "max_staleness": 2,
        "schedule": {"kind": "forecast"},
        "rollout": {"two_stage": {"first": 2}, "dynamic_sampling": None},
    },
    "mixing": {"rollout": {"mixing": {"prob": 0.5, "neighbours": 2}}},
    "a critic": {"objective": {"advantage": {"kind": "gae"}}, "rollout": {"dynamic_sampling": None}},
    "parts of the reward": {"reward": {"soft_overlong": {"limit": 4, "cache": 2}}, "max_staleness": 2},
}


@pytest.mark.parametrize("name", slow_but(WITH_STATE, "three steps off"))
def test_from_the_checkpoint_of_any_step_a_run_goes_on_to_the_same_bytes(tmp_path, name):
    steps = range(5) if name.endswith("off") else (1, 3)
    assert_goes_on_from(steps, tmp_path, ahead(**WITH_STATE[name], train=EVERY_STEP))


def test_how_often_a_run_is_saved_changes_nothing(tmp_path):
    often, seldom = (ahead(2, train={"checkpoint_every": every}) for every in (1, 5))
    found, expected = (outputs(train(tmp_path / name, one)) for name, one in (("a", often), ("b", seldom)))
    assert found == expected


def test_a_checkpoint_holds_what_was_sampled_for_the_steps_ahead(tmp_path):
    layout = train(tmp_path, ahead(2, train=EVERY_STEP))
    folders = sorted((layout.state / "train").glob("step-*"))
    assert [len(list(read_jsonl(folder / "rollouts.jsonl"))) for folder in folders] == [0, 2, 2, 2, 1, 0]


# Responses of the monitor


def at(step: int, level: str, *action: dict[str, Any]) -> dict[str, Any]:
    when = f"step > {step - 0.5} and step < {step + 0.5} and progress >= 0"
    return {"when": when, "level": level, "action": list(action), "why": "w"}


def test_a_setting_that_a_response_changes_holds_for_rollouts_that_are_asked_for_later(tmp_path, monkeypatch):
    repeats = {"knob": "rollout.max_repeats", "to": 1}
    configured: list[int | None] = []
    step = Collector.step

    def noting(self: Collector, *how: Any) -> Rollout:
        configured.append(self._settings.max_repeats)
        return step(self, *how)

    monkeypatch.setattr(Collector, "step", noting)
    train(tmp_path, ahead(2, health={"rules": {"odd": at(1, "intervene", repeats)}}, train={"steps": 6}))
    assert configured == [None, None, None, None, 1, 1]  # those of steps 0 to 3 were asked for at step 1 or before


def test_after_a_roll_back_what_was_sampled_ahead_is_thrown_away_and_sampled_again(tmp_path):
    rules = {"rules": {"sick": at(3, "rollback")}}
    engine, starts, state, found = noted(tmp_path, ahead(2, **ALWAYS_TRAINS, health=rules, train=NO_DEV))
    assert [record.signals["progress"] for record in found] == [0, 1, 2, 3, 2, 3, 4]
    assert state.pending == []
    sampled = [weight for n, weight in engine.sampled if n == 4]
    back = starts[4]
    assert torch.equal(back, starts[2])
    again = [weight for weight in sampled if torch.equal(weight, back)]
    assert len(again) == 4  # that of step 4 before, which was thrown away, and those of steps 2, 3 and 4 after
    assert [record.signals["staleness_max"] for record in found] == [1, 3, 5, 5, 1, 3, 5]


EVENTFUL = {
    "slow": at(1, "intervene", {"knob": "learner.lr", "times": 0.5}),
    "sick": at(3, "rollback"),
    "late": at(5, "intervene", {"knob": "rollout.max_repeats", "to": 1}),
}


def eventful() -> Settings:
    health = {"rules": EVENTFUL, "responses": {"judge_after": 2}}
    return ahead(2, health=health, train={"checkpoint_every": 1})


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return outputs(train(tmp_path_factory.mktemp("whole"), eventful()))


@pytest.mark.parametrize(
    ("method", "times"),
    slow_but(
        [*(("checkpoint", n) for n in range(1, 8)), *(("append", n) for n in (1, 3, 4, 5, 6))],
        ("checkpoint", 4),
        ("append", 5),
    ),
)
def test_a_run_killed_anywhere_around_a_roll_back_leaves_no_thread_and_ends_with_the_same_bytes(
    uninterrupted, tmp_path, method, times
):
    layout = workspace(tmp_path)
    with killed(method, times):
        stage.run(eventful(), layout)
    assert not working()
    assert outputs(train(tmp_path, eventful())) == uninterrupted


def test_what_went_into_quarantine_meanwhile_is_not_trained_on(tmp_path):
    layout = workspace(tmp_path)
    clusters = ranked_clusters(read_prompts(layout.split("train")), layout)
    with assembled(ahead(1, **ALWAYS_TRAINS), layout, clusters) as parts:
        parts.rollouts.take()
        parts.state.progress += 1
        parts.rollouts.settle()
        (waiting,) = parts.state.pending
        barred = waiting.trained[0].prompt.id
        parts.state.responder.quarantined.add(barred)
        taken = parts.rollouts.take()
    assert barred in {one.prompt.id for one in taken.sampled}
    assert [one.prompt.id for one in taken.trained] == [
        one.prompt.id for one in waiting.trained if one.prompt.id != barred
    ]


# How old


def test_every_token_bears_the_number_of_the_hand_over_that_it_was_sampled_under():
    groups = [group([1.0, 0.0]), group([0.0, 1.0])]
    first, second = (
        Rollout((one,), (one,), 1).numbered(lambda c, v=v: (v,) * len(c.token_ids)) for v, one in enumerate(groups)
    )
    batch = build_batch([*first.trained, *second.sampled], pad_id=0)
    assert batch.versions is not None
    for row, version in zip(batch.versions.tolist(), batch.group.tolist(), strict=True):
        assert set(row) <= {0, version}  # 0 behind the end
    assert {int(v) for v in batch.versions[batch.response_mask]} == {0, 1}
    assert build_batch([group([1.0, 0.0]), second.sampled[0]], pad_id=0).versions is None


@pytest.mark.parametrize(
    ("versions", "now", "updates", "expected"),
    [
        (((5, 5), (5,)), 5, 1, {"staleness": 0.0, "staleness_max": 0.0}),
        (((4, 4), (4,)), 5, 1, {"staleness": 1.0, "staleness_max": 1.0}),
        (((3, 4), (5,)), 5, 1, {"staleness": 1.0, "staleness_max": 2.0}),
        (((4, 4), (4,)), 5, 4, {"staleness": 5.5, "staleness_max": 7.0}),
        (((), ()), 5, 4, {}),
    ],
)
def test_staleness_is_counted_in_updates_between_the_sampling_and_the_update(versions, now, updates, expected):
    one = group([1.0, 0.0], tokens=[[30, 1], [1]])
    completions = tuple(
        Completion(c.token_ids, c.logprobs, "stop", "", versions=v)
        for c, v in zip(one.completions, versions, strict=True)
    )
    batch = build_batch([Group(one.prompt, one.prompt_ids, completions, one.scores)], pad_id=0)
    assert staleness(batch, now, updates) == expected


def test_a_run_records_how_old_its_tokens_are(tmp_path):
    chosen = ahead(2, **ALWAYS_TRAINS)
    found = [row["signals"] for row in records(train(tmp_path, chosen))]
    assert [signals["staleness_max"] for signals in found] == [1, 3, 5, 5, 5]  # two updates a step
    assert [signals["staleness"] for signals in found] == [0.5, 2.5, 4.5, 4.5, 4.5]


def test_the_samplers_probabilities_are_those_of_the_older_policy_and_the_correction_sees_the_difference(tmp_path):
    signals = [row["signals"] for row in records(train(tmp_path, ahead(1, **ALWAYS_TRAINS)))]
    assert "drift_k3" not in signals[0]
    assert all(one["drift_k3"] > 1e-4 and one["ess"] < 1 for one in signals[1:])


def test_what_sampler_and_learner_say_of_the_same_weights_is_measured_on_the_dev_split(tmp_path):
    """Rules on ``mismatch_*`` are about a sampler that is broken, not about one that is behind."""
    signals = [row["signals"] for row in records(train(tmp_path, ahead(2, **ALWAYS_TRAINS)))]
    assert ["mismatch_k3" in one for one in signals] == [True, False, False, True, False]  # dev is due every third step
    assert max(one["mismatch_max"] for one in signals if "mismatch_max" in one) < 1e-4


def test_a_sampler_that_differs_from_the_learner_shows_although_its_rollouts_are_old(tmp_path):
    def off(engine: Any) -> Any:
        generate = engine.generate

        def differing(*how: Any) -> Any:
            wrong = [[replace(c, logprobs=tuple(p - 0.5 for p in c.logprobs)) for c in g] for g in generate(*how)]
            return [tuple(completions) for completions in wrong]

        engine.generate = differing
        return engine

    _, found = watched(tmp_path, ahead(1, **ALWAYS_TRAINS), wrap_engine=off)
    gaps = [record.signals["mismatch_mean"] for record in found if "mismatch_mean" in record.signals]
    assert gaps == [pytest.approx(0.5, abs=1e-3)] * 2


class InFlight(Around):
    """An engine that takes new weights in the middle of a completion: the first token is older than the others.

    Like a server it counts the hand-overs of its own life.
    """

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.version, self._renewed = 7, threading.Event()

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        self.inner.load_weights(weights)
        self.version += 1
        self._renewed.set()

    def generate(self, prompts: Any, sampling: Any) -> Any:
        before = self.version
        groups = self.inner.generate(prompts, sampling)
        if threading.current_thread().name.startswith("rollouts") and sampling.n == 4:
            self._renewed.clear()
            self._renewed.wait(0.5)
        now = self.version
        return [tuple(replace(c, versions=(before, *[now] * (len(c.token_ids) - 1))) for c in g) for g in groups]


def test_with_weights_that_land_in_flight_tokens_of_one_completion_are_of_different_ages(tmp_path):
    chosen = ahead(1, **ALWAYS_TRAINS, learner={"updates_per_step": 1}, train={"steps": 6, **NO_DEV})
    how = chosen.rollout.asynchrony.model_copy(update={"in_flight": True})
    chosen = chosen.model_copy(update={"rollout": chosen.rollout.model_copy(update={"asynchrony": how})})
    _, found = watched(tmp_path, chosen, wrap_engine=InFlight)
    ages = [(r.signals["staleness"], r.signals["staleness_max"]) for r in found]
    assert all(0 <= mean <= oldest <= 1 for mean, oldest in ages)
    assert any(0 < mean < oldest for mean, oldest in ages)


class Counting(InFlight):
    """The same, whose completions are of one version each."""

    def generate(self, prompts: Any, sampling: Any) -> Any:
        groups = self.inner.generate(prompts, sampling)
        return [tuple(replace(c, versions=(self.version,) * len(c.token_ids)) for c in g) for g in groups]


def test_an_engine_that_counts_its_own_hand_overs_is_in_turns_never_old_also_after_a_resume(tmp_path):
    chosen = settings(**ALWAYS_TRAINS, train={"steps": 6, "checkpoint_every": 1, **NO_DEV})
    with killed("append", 4):
        watched(tmp_path, chosen, wrap_engine=Counting)
    _, found = watched(tmp_path, chosen, wrap_engine=Counting)
    assert [record.step for record in found] == [3, 4, 5]
    half = (chosen.learner.updates_per_step - 1) / 2
    assert {(r.signals["staleness"], r.signals["staleness_max"]) for r in found} == {(half, 2 * half)}
    assert all("mismatch_mean" in record.signals and "drift_mean" not in record.signals for record in found)


# Kept in JSON

floats = st.floats(width=32)
names = st.text(min_size=1, max_size=3)


@st.composite
def completions(draw: Any) -> Completion:
    n = draw(st.integers(1, 4))
    some = st.lists(st.integers(0, 300), min_size=n, max_size=n).map(tuple)
    return Completion(
        draw(some),
        tuple(draw(st.lists(floats, min_size=n, max_size=n))),
        draw(st.sampled_from(["stop", "stop_token", "length"])),
        draw(st.text(max_size=5)),
        draw(
            st.lists(st.builds(Mix, st.integers(0, 3), some, some.map(lambda w: tuple(map(float, w)))), max_size=2).map(
                tuple
            )
        ),
        draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n).map(tuple)),
        draw(st.none() | st.just(np.arange(2 * n, dtype=np.int16).reshape(n, 1, 2))),
        draw(st.just(()) | some),
    )


scores = st.builds(
    Score, st.floats(0, 1), st.dictionaries(names, floats), st.none(), st.floats(0, 2), st.dictionaries(names, floats)
) | st.builds(Score, st.none(), st.just({}), names)


@given(st.lists(st.tuples(completions(), scores), min_size=1, max_size=3), st.booleans())
def test_a_rollout_comes_back_from_json_as_it_was(pairs, trained):
    one = Group(prompt(3), (2, 20, 3), *(tuple(column) for column in zip(*pairs, strict=True)))
    other = group([1.0, None], prompt=prompt(4))
    rollout = Rollout((one, other), (other, one) if trained else (other,), 2, {"coverage": 0.25})
    found = from_row(json.loads(dump_line(to_row(rollout))), {p.id: p for p in (prompt(3), prompt(4))})
    assert repr(found) == repr(rollout)  # NaN is no equal of itself, but written alike
    assert [list(s.parts) for s in found.sampled[0].scores] == [list(s.parts) for s in one.scores]
    for was, now in zip(one.completions, found.sampled[0].completions, strict=True):
        assert (was.routes is None) == (now.routes is None)
        if was.routes is not None:
            assert now.routes.dtype == was.routes.dtype
            assert np.array_equal(now.routes, was.routes)
    assert all(any(t is s for s in found.sampled) for t in found.trained)


# Errors, interrupts, threads


class VerifierBroke(Exception):
    pass


def working() -> list[str]:
    """Threads of a run that are still there."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("rollouts", "checkpoint"))]


def test_an_error_of_the_sampling_thread_is_raised_where_its_rollout_is_taken_with_its_own_traceback(
    tmp_path, monkeypatch
):
    step, calls = Collector.step, []

    def breaking(self: Collector, *how: Any) -> Rollout:
        calls.append(1)
        if len(calls) == 3:
            raise VerifierBroke("no answer")
        return step(self, *how)

    monkeypatch.setattr(Collector, "step", breaking)
    with pytest.raises(VerifierBroke, match="no answer") as caught:
        train(tmp_path, ahead(1, train={"checkpoint_every": 100}))
    assert "breaking" in {entry.name for entry in caught.traceback}
    assert not working()
    assert [row["step"] for row in read_jsonl(Layout(tmp_path).state / "train" / "records.jsonl")] == [0, 1]


class Cancellable(Around):
    """An engine that a long rollout is under way in from the third on, until it is cancelled."""

    def __init__(self, engine: Any, long: int) -> None:
        super().__init__(engine)
        self._long, self.rollouts = long, 0
        self.cancelled, self.at_work = threading.Event(), threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()

    def generate(self, prompts: Any, sampling: Any) -> Any:
        self.rollouts += sampling.n == 4
        if sampling.n == 4 and self.rollouts == self._long:
            self.at_work.set()
            if self.cancelled.wait(20):
                raise VerifierBroke("cancelled")
        return self.inner.generate(prompts, sampling)


@pytest.mark.parametrize("error", [VerifierBroke("rank 1 died"), KeyboardInterrupt()])
def test_an_error_during_a_long_rollout_is_raised_at_once_and_the_rollout_is_cancelled(tmp_path, error):
    engines: list[Cancellable] = []

    def wrap_engine(engine: Any) -> Any:
        engines.append(Cancellable(engine, long=2))
        return engines[0]

    def wrap_learner(learner: Any) -> Any:
        def dying(*_: Any) -> Any:
            engines[0].at_work.wait(60)
            raise error

        learner.step = dying
        return learner

    with pytest.raises(type(error)) as caught:
        watched(tmp_path, ahead(1, **ALWAYS_TRAINS), wrap_engine=wrap_engine, wrap_learner=wrap_learner)
    assert caught.value is error
    assert (engines[0].cancelled.is_set(), working()) == (True, [])


def test_a_run_that_comes_to_its_end_cancels_nothing(tmp_path):
    engines: list[Cancellable] = []

    def wrap_engine(engine: Any) -> Any:
        engines.append(Cancellable(engine, long=0))
        return engines[0]

    watched(tmp_path, ahead(1), wrap_engine=wrap_engine)
    assert not engines[0].cancelled.is_set()


def test_jobs_of_a_worker_are_done_one_after_another_in_their_order():
    done: list[int] = []
    with worker("test", background=True) as background:
        for number in range(20):
            background.submit(lambda n=number: (time.sleep(0.001 * (n % 3)), done.append(n)))
    assert done == list(range(20))


def test_without_a_thread_a_job_is_done_when_it_is_asked_for():
    name = worker("test", background=False).submit(lambda: threading.current_thread().name)
    assert name.result() == threading.current_thread().name
    with pytest.raises(VerifierBroke):
        worker("test", background=False).submit(raising)


def raising() -> None:
    raise VerifierBroke


# At the same time


def test_while_the_learner_is_at_a_step_the_engine_is_at_the_next_rollout(tmp_path):
    """Each waits for the other in the middle of its work, so that in turns neither would come to an end."""
    both, rollouts, updates, steps = threading.Barrier(2, timeout=60), [], [], 4

    def wrap_engine(engine: Any) -> Any:
        generate = engine.generate

        def meeting(prompts: Any, sampling: Any) -> Any:
            if sampling.n == 4:
                rollouts.append(sampling.seed)
                if len(rollouts) > 1:
                    both.wait()
            return generate(prompts, sampling)

        engine.generate = meeting
        return engine

    def wrap_learner(learner: Any) -> Any:
        step = learner.step

        def meeting(*how: Any) -> Any:
            updates.append(1)
            if len(updates) < steps:
                both.wait()
            return step(*how)

        learner.step = meeting
        return learner

    chosen = ahead(1, **ALWAYS_TRAINS, train={"steps": steps, **NO_DEV})
    watched(tmp_path, chosen, wrap_engine=wrap_engine, wrap_learner=wrap_learner)
    assert (len(rollouts), len(updates), both.broken) == (steps, steps, False)
