"""What a run can know to be wrong without any threshold on noise: the first gradients, and weights measured twice."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import Judge, parity, settings, workspace
from training_runs import judged_by_parity, killed, outputs, train, watched

from components.config import Settings
from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.files import read_json
from components.health.monitor import standing
from components.health.records import read_records
from components.health.responses import read_ledger
from components.health.rulebook import DEFAULT_RULES, load_rules
from components.learner.batch import Batch
from components.rollout import Collector
from components.stages import train as stage
from components.training import assembly
from components.training.credit import Credit
from components.training.heldout import HeldOut
from components.training.run import RunState
from components.types import Completion, Prompt, Score, StepRecord
from tests.benchmarks.health.faults.base import Around, AroundLearner, AroundSchedule
from tests.benchmarks.health.faults.verifier_noise import turned

__all__ = ["judged_by_parity"]  # of every test here

ANSWERS = {"eval_prompts": 3, "eval_samples": 8}


class Verifier(Judge):
    """Judges by parity until it breaks, and accepts nothing from then on."""

    def __init__(self) -> None:
        self.broken = False
        super().__init__(self._judged)

    def _judged(self, completion: Completion) -> float | None:
        return 0.0 if self.broken else parity(completion)


class Once(AroundLearner):
    """A learner to which something happens before one of its updates."""

    def __init__(self, inner: Any, at: int) -> None:
        super().__init__(inner)
        self._left = at

    def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
        self._left -= 1
        return super().step(self.before(batch) if self._left == -1 else batch, seed, norm_limit)

    @abstractmethod
    def before(self, batch: Batch) -> Batch:
        """What happens; returns the batch of the update."""


class Unclipped(Once):
    """One batch whose advantages are a million times what they should be."""

    def before(self, batch: Batch) -> Batch:
        return replace(batch, advantages=1e6 * batch.advantages, seal=None)


@pytest.fixture
def verifier(monkeypatch: pytest.MonkeyPatch) -> Verifier:
    """One that breaks when the run goes back."""
    verifier, original = Verifier(), RunState.roll_back

    def breaking(self: RunState, *args: Any) -> None:
        original(self, *args)
        verifier.broken = True

    monkeypatch.setattr(assembly, "Scorer", lambda *_: verifier)
    monkeypatch.setattr(RunState, "roll_back", breaking)
    return verifier


def going_back(**more: Any) -> Settings:
    """A run that goes back to its first checkpoint after step 3, and reads what its policy is worth then."""
    rules = {
        "sick": {"when": "step > 2.5 and step < 3.5 and progress >= 0", "level": "rollback", "why": "planted"},
        "same": {"when": "same_weights_fall > 5", "level": "stop", "why": "not the policy", "optional": True},
    }
    return settings(health={"rules": rules}, train={"checkpoint_every": 9, **ANSWERS, **more})


def test_weights_that_answer_worse_than_when_they_were_saved_stop_the_run(tmp_path, verifier):
    layout = train(tmp_path, going_back())
    records = read_records(layout.records)
    assert [record.step for record in records if "same_weights_fall" in record.signals] == [4]
    assert records[4].signals["same_weights_fall"] > 5
    assert [(one.step, one.rule, one.level) for one in read_ledger(layout.ledger).responses] == [
        (3, "sick", "rollback"),
        (4, "same", "stop"),
    ]
    assert read_json(layout.train_metrics)["stopped_by"] == "same"


def test_weights_that_answer_as_well_as_before_are_trained_on(tmp_path):
    layout = train(tmp_path, going_back())
    (again,) = [r for r in read_records(layout.records) if "same_weights_fall" in r.signals]
    assert again.step == 4 and again.signals["same_weights_fall"] < 5
    assert read_json(layout.train_metrics)["progress"] == 5
    (outcome,) = read_ledger(layout.ledger).outcomes
    assert outcome.recovered is None  # the run ended before a measurement that could show it


@pytest.mark.parametrize(("method", "after"), [("roll_back", True), ("append", True)])
@pytest.mark.slow
def test_a_run_killed_before_its_weights_are_measured_again_ends_with_the_same_bytes(tmp_path, method, after):
    whole = outputs(train(tmp_path / "whole", going_back()))
    layout = workspace(tmp_path / "killed")
    with killed(method, {"roll_back": 1, "append": 4}[method], after=after):
        stage.run(going_back(), layout)
    assert outputs(train(tmp_path / "killed", going_back())) == whole


class Hot(Once):
    """Eight times the learning rate from one update on, until the learner is given its settings again."""

    def configure(self, learner: LearnerSettings, objective: ObjectiveSettings) -> None:
        self._given = learner, objective
        self.inner.configure(learner, objective)

    def before(self, batch: Batch) -> Batch:
        learner, objective = self._given
        self.inner.configure(learner.model_copy(update={"lr": 8 * learner.lr}), objective)
        return batch


DEFAULTS = load_rules(DEFAULT_RULES)


def shipped(*names: str) -> dict[str, Any]:
    return {"rules": {name: DEFAULTS[name].model_dump() for name in names}}


def guarded(root: Path, *names: str, steps: int = 5, **wrappers: Any) -> tuple[RunState, list[StepRecord]]:
    """A run under these shipped rules, in which every prompt that is drawn is trained on."""
    chosen = settings(health=shipped(*names), rollout={"dynamic_sampling": None}, train={"steps": steps})
    return watched(root, chosen, **wrappers)


def test_a_rate_that_is_not_the_configured_one_is_found_in_that_step_undone_and_set_again(tmp_path):
    state, records = guarded(tmp_path, "settings_differ", wrap_learner=lambda learner: Hot(learner, 3))
    assert [record.step for record in records if record.signals["broken_settings"]] == [3]
    assert [(one["name"], one["part"], one["found"]) for one in records[3].notes["broken"]] == [
        ("learning_rate", "settings", "the learning rate is 0.08; learner.lr is 0.01"),
        ("in_force", "settings", "the learner works with other settings than those of the run"),
    ]
    assert records[3].notes["rolled_back_to"] == 2
    assert [record.signals["lr"] for record in records[4:]] == [0.01] * 3 and state.progress == 5


class Cutting(Around):
    """An engine that cuts every completion after two tokens and says that it has ended."""

    def generate(self, prompts: Any, sampling: Any) -> list[tuple[Completion, ...]]:
        def cut(one: Completion) -> Completion:
            return replace(one, token_ids=one.token_ids[:2], logprobs=one.logprobs[:2], finish_reason="stop")

        return [tuple(map(cut, group)) for group in self.inner.generate(prompts, sampling)]


def test_completions_that_are_cut_are_not_learned_from_and_stop_the_run_where_no_hand_over_helps(tmp_path):
    state, records = guarded(tmp_path, "sampler_broken", "sampler_unusable", steps=12, wrap_engine=Cutting)
    assert (len(records), state.stopped_by, state.repeated) == (10, "sampler_unusable", 10)
    assert not any("grad_norm" in record.signals for record in records)
    assert [one.changes[0].knob for one in read_ledger(state.ledger).responses if one.changes] == ["reload", "reload"]
    (found,) = records[0].notes["broken"]
    assert (found["name"], "end otherwise than by an end token or at 4 tokens" in found["found"]) == ("ends", True)


@pytest.mark.parametrize("at", [1, 3])
def test_a_gradient_that_explodes_within_the_first_steps_changes_nothing(tmp_path, at):
    state, records = guarded(tmp_path, wrap_learner=lambda learner: Unclipped(learner, at))
    skipped = [record.step for record in records if record.signals.get("updates_skipped")]
    assert skipped == [at]
    assert all(torch.isfinite(weight).all() for weight in state.learner.weights().values())


class Clocked(Judge):
    """Judges by parity, and from the call on that is given the other way round for the prompts of one family."""

    def __init__(self, family: str, calls: int) -> None:
        super().__init__(parity)
        self._family, self._left = family, calls

    def score_groups(self, items: Any) -> list[tuple[Score, ...]]:
        self._left -= 1
        scored = super().score_groups(items)
        if self._left >= 0:
            return scored
        return [
            tuple(turned(one) if prompt.family == self._family else one for one in scores)
            for (prompt, _), scores in zip(items, scored, strict=True)
        ]


def test_a_verifier_that_turns_against_one_family_is_found_by_what_it_has_judged_before(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "Scorer", lambda *_: Clocked("odd", 6))
    state, records = guarded(tmp_path, "verifier_broken", steps=12)
    found = [one for record in records for one in record.notes.get("broken", ())]
    assert {(one["name"], one["part"]) for one in found} == {("verdicts", "verifier")}
    assert state.stopped_by == "verifier_broken" and len(records) < 12


class Losing(Once):
    """Loses its moments."""

    def before(self, batch: Batch) -> Batch:
        self.inner.sharding._optimizer._adamw.state.clear()
        return batch


def test_moments_that_are_lost_are_taken_from_the_checkpoint_before(tmp_path):
    state, records = guarded(tmp_path, "learner_broken", wrap_learner=lambda learner: Losing(learner, 3))
    assert [record.step for record in records if record.signals.get("optimizer_lag")] == [3]
    assert records[3].notes["rolled_back_to"] == 2 and state.progress == 5


def test_advantages_that_are_turned_round_for_one_family_stop_the_run(tmp_path, monkeypatch):
    original = Credit.assign

    def turned_round(self: Credit, batch: Batch, groups: Any, step: int) -> Any:
        credited = original(self, batch, groups, step)
        odd = torch.tensor([groups[number].prompt.family == "odd" for number in batch.group])
        flipped = torch.where(odd[:, None], -credited.batch.advantages, credited.batch.advantages)
        return credited._replace(batch=replace(credited.batch, advantages=flipped))

    monkeypatch.setattr(Credit, "assign", turned_round)
    state, records = guarded(tmp_path, "learner_broken")
    assert state.stopped_by == "learner_broken"
    assert records[-1].notes["broken"][0]["found"] == "advantages have the sign opposite to the rewards in odd"


class Standing(AroundSchedule):
    """Draws the same prompts again and again."""

    def next(self, count: int) -> list[Prompt]:
        return list(self.inner.prompts[:count])


def test_a_schedule_that_stands_still_is_replaced(tmp_path):
    state, records = guarded(tmp_path, "schedule_stands", steps=9, wrap_schedule=Standing)
    repeated = [record.signals["schedule_repeated"] for record in records]
    assert repeated[:4] == [0.0, 1.0, 1.0, 1.0] and min(repeated[5:]) < 1
    (verdict,) = [one for record in records for one in record.notes["verdicts"]]
    assert (verdict["rule"], state.progress, state.schedule.taken_over) == ("schedule_stands", 9, True)


def test_prompts_that_the_schedule_does_not_draw_are_found_in_that_step(tmp_path):
    state, records = guarded(tmp_path, "schedule_differs", steps=6, wrap_schedule=Standing)
    assert [record.signals["broken_schedule"] for record in records] == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert (state.schedule.taken_over, state.progress) == (True, 6)


class Foreign(AroundSchedule):
    """Gives every prompt another answer."""

    def next(self, count: int) -> list[Prompt]:
        return [replace(one, answer="0") for one in self.inner.next(count)]


class Relabelled(AroundSchedule):
    """Gives one prompt another answer."""

    def next(self, count: int) -> list[Prompt]:
        return [replace(one, answer="0") if one.id == "p003" else one for one in self.inner.next(count)]


def test_prompts_that_are_not_as_in_the_training_split_are_drawn_from_the_split_itself(tmp_path):
    chosen = settings(
        health=shipped("prompts_differ"),
        rollout={"dynamic_sampling": None},
        schedule={"kind": "uniform"},
        train={"steps": 9},
    )
    state, records = watched(tmp_path, chosen, wrap_schedule=Relabelled)
    assert sum(record.signals["broken_data"] for record in records) == 1
    assert state.schedule.taken_over and state.progress == 9


def test_rollouts_that_were_drawn_before_the_replacement_ask_for_nothing_more(tmp_path):
    """Sampled ahead, they still hold prompts of the schedule that was replaced."""
    chosen = settings(
        health=shipped("prompts_differ"),
        rollout={"dynamic_sampling": None, "asynchrony": {"max_staleness": 3}},
        train={"steps": 9},
    )
    state, records = watched(tmp_path, chosen, wrap_schedule=Foreign)
    assert [record.step for record in records if record.signals["broken_data"]] == [0, 1, 2, 3]
    assert state.schedule.taken_over and state.progress == 9
    assert state.step == 10  # of one of those steps nothing could be learned


def test_a_warning_starts_a_measurement_of_the_dev_split(tmp_path):
    rules = {"odd": {"when": "step > 0.5 and step < 1.5 and progress >= 0", "level": "warn", "why": "planted"}}
    chosen = settings(health={"rules": rules}, train={"eval_every": 4})
    _, records = watched(tmp_path, chosen)
    assert [record.step for record in records if "dev_pass_at_1" in record.signals] == [0, 2, 4]


@pytest.mark.parametrize(("method", "times"), [("append", 3), ("append", 5), ("roll_back", 1)])
def test_a_run_whose_schedule_was_replaced_resumes_to_the_same_bytes(tmp_path, method, times):
    """Killed after the replacement, with a checkpoint from before it and one from after it."""
    rules = {
        "other": {
            "when": "step > 1.5 and step < 2.5 and progress >= 0",
            "level": "intervene",
            "part": "schedule",
            "action": [{"knob": "repair"}],
            "why": "planted",
        },
        "sick": {"when": "step > 5.5 and step < 6.5 and progress >= 0", "level": "rollback", "why": "planted"},
    }
    chosen = settings(health={"rules": rules}, train={"steps": 8, "checkpoint_every": 2})
    whole = outputs(train(tmp_path / "whole", chosen))
    layout = workspace(tmp_path / "killed")
    with killed(method, times):
        stage.run(chosen, layout)
    assert outputs(train(tmp_path / "killed", chosen)) == whole
    changes = [change.knob for one in read_ledger(layout.ledger).responses for change in one.changes]
    assert "redraw" in changes


class Torn(Once):
    def before(self, batch: Batch) -> Batch:
        return replace(batch, advantages=-batch.advantages)


@pytest.mark.parametrize("asynchrony", [None, {"max_staleness": 2}])
def test_a_step_that_is_made_again_has_other_seeds(tmp_path, monkeypatch, asynchrony):
    seeds: dict[str, list[int]] = {"dev": [], "rollout": []}

    def noted(name: str, own: type, method: str, place: int) -> None:
        original = getattr(own, method)

        def noting(*args: Any) -> Any:
            seeds[name].append(args[place])
            return original(*args)

        monkeypatch.setattr(own, method, noting)

    noted("dev", HeldOut, "sample", 1)
    noted("rollout", Collector, "step", 3)
    chosen = settings(rollout={"dynamic_sampling": None, "asynchrony": asynchrony}, train={"eval_every": 1})
    state, _ = watched(tmp_path, chosen, wrap_learner=lambda learner: Torn(learner, 2))
    assert (state.progress, state.repeated) == (5, 1)
    assert [(len(found), len(set(found))) for found in seeds.values()] == [(6, 6)] * 2


def test_a_batch_that_is_changed_on_its_way_to_the_learner_changes_nothing(tmp_path):
    state, records = guarded(tmp_path, wrap_learner=lambda learner: Torn(learner, 2))
    assert [record.step for record in records if record.signals["batch_torn"]] == [2]
    assert "grad_norm" not in records[2].signals
    assert (state.progress, len(records)) == (5, 6)  # the step is made again


@pytest.mark.parametrize(("factor", "stops"), [(2.0, False), (-1.0, True)])
def test_batches_that_always_come_torn_are_learned_from_under_watch_unless_their_signs_are_wrong(
    tmp_path, factor, stops
):

    class Torn(AroundLearner):
        def step(self, batch: Batch, seed: int, norm_limit: float = inf) -> dict[str, float]:
            return super().step(replace(batch, advantages=factor * batch.advantages), seed, norm_limit)

    state, records = guarded(tmp_path, "batch_torn", "updates_reversed", steps=30, wrap_learner=Torn)
    learned = ["grad_norm" in record.signals for record in records]
    assert learned[-1] and not learned[0] and (state.stopped_by is not None) == stops
    assert all(record.signals["batch_torn"] for record in records)
    assert stops or ("batch_torn" in standing(state.responder.started.health.rules, records) and state.progress == 30)


def test_weights_that_are_changed_between_two_updates_are_taken_from_the_checkpoint_before(tmp_path):

    class Jolted(Once):
        def before(self, batch: Batch) -> Batch:
            for weight in self.inner._policy.weights().values():
                weight += 0.01
            return batch

    state, records = guarded(tmp_path, "learner_broken", wrap_learner=lambda learner: Jolted(learner, 3))
    assert records[3].signals["weights_moved"] > 0 and records[3].notes["rolled_back_to"] == 2
    assert state.responder.settings == state.responder.started  # the policy is not to blame, so no knob was turned
