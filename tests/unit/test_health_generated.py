"""Faults that are drawn: their names, their forms, what they touch, and the arithmetic of their table."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
import torch
from factories import Judge, prompts
from hypothesis import given
from hypothesis import strategies as st

from components.errors import InputError
from components.learner.batch import Batch
from components.scheduling import Uniform
from components.types import Completion
from tests.benchmarks.health.faults.base import Around
from tests.benchmarks.health.generated import MECHANISMS
from tests.benchmarks.health.generated.base import ONSETS
from tests.benchmarks.health.generated.drawing import conditions, fault_of, half_of
from tests.benchmarks.health.generated.forms import TIMES, Form
from tests.benchmarks.health.generated.healthy import by_chance, has_fallen
from tests.benchmarks.health.generated.judged import Judged, shares
from tests.benchmarks.health.grounds import TOY
from tests.benchmarks.health.store import Run

LATE = 1000


def made(condition: str, *, step: int = LATE) -> Any:
    """A fault at a step, with a family of prompts of its own."""
    fault = fault_of(condition, 3)
    fault.prompts(prompts(20))
    fault.clock.step = step
    return fault


def test_there_are_enough_distinct_faults_and_no_kind_is_in_both_halves() -> None:
    seen, unseen = set(conditions("seen")), set(conditions("unseen"))
    assert len(seen) > 60 and len(unseen) > 60 and not seen & unseen
    assert seen | unseen == set(conditions())
    assert {half_of(name.split("-")[0]) for name in seen} == {"seen"}


def test_an_unknown_fault_is_refused() -> None:
    with pytest.raises(InputError, match="no fault"):
        fault_of("wronganswers-constant-all-7", 0)


@pytest.mark.parametrize("condition", list(conditions())[::9])
def test_every_fault_begins_in_the_middle_of_a_run(condition: str) -> None:
    fault = made(condition)
    assert fault.begins in ONSETS and fault.form.strength(-1) == 0.0
    assert max(fault.form.strength(since) for since in range(20)) == 1.0


@given(st.sampled_from(TIMES), st.integers(-5, 60))
def test_a_strength_is_a_share(time: Any, since: int) -> None:
    assert 0.0 <= Form(time, "all").strength(since) <= 1.0


def test_a_scope_says_what_is_touched() -> None:
    assert [Form("constant", "replica").touches(place, "a", "b") for place in range(3)] == [True, False, True]
    assert [Form("constant", "family").touches(0, family, "b") for family in "ab"] == [False, True]


@pytest.mark.parametrize(
    "name", [name for name, kind in MECHANISMS.items() if kind.part in ("data", "schedule") and not kind.held_back]
)
def test_draws_are_as_scheduled_until_the_fault_begins(name: str) -> None:
    condition = f"{name}-constant-all-{max(MECHANISMS[name].sizes):g}"
    split = [replace(one, difficulty=float(n)) for n, one in enumerate(prompts(40))]
    expected = Uniform(split, 0).next(16)
    assert made(condition, step=0).schedule(Uniform(split, 0)).next(16) == expected
    drawn = made(condition).schedule(Uniform(split, 0)).next(16)
    assert drawn != expected and len(drawn) == 16
    assert (set(drawn) <= set(split)) == (MECHANISMS[name].part == "schedule")


@pytest.mark.parametrize(
    ("name", "texts", "accuracies"),
    [
        ("turned", 4, [0.0, 1.0]),
        ("accepting", 4, [1.0, 1.0]),
        ("refusing", 4, [0.0, 0.0]),
        ("unable", 4, [None, None]),
        ("bylength", 40, [0.0, 0.0]),
    ],
)
def test_verdicts_are_touched_from_the_beginning_on(name: str, texts: int, accuracies: list[float | None]) -> None:
    answers = [
        Completion((7,) * texts, (0.0,) * texts, "stop", ""),
        Completion((8,) * texts, (0.0,) * texts, "stop", ""),
    ]
    judge = Judge(lambda one: float(one.token_ids[0] == 7))
    items = [(prompts(1)[0], answers)]
    before = made(f"{name}-constant-all-1", step=0).scorer(judge).score_groups(items)
    after = made(f"{name}-constant-all-1").scorer(judge).score_groups(items)
    assert [score.accuracy for score in before[0]] == [1.0, 0.0]
    assert [score.accuracy for score in after[0]] == accuracies


class Engine:
    """Gives every prompt two completions of its own, and remembers its weights."""

    def generate(self, prompts: Any, _sampling: Any) -> list[tuple[Completion, ...]]:
        return [
            tuple(Completion((n, n + g, 5, 6), (-1.0,) * 4, "stop", "abcd") for g in range(2))
            for n in range(len(prompts))
        ]

    def load_weights(self, weights: Any) -> None:
        self.weights = weights


@pytest.mark.parametrize("name", ["cut", "repeated", "misreported", "swapped"])
def test_completions_are_touched_from_the_beginning_on(name: str) -> None:
    condition = f"{name}-constant-all-{max(MECHANISMS[name].sizes):g}"
    requests: list[Any] = [(1,), (2,), (3,)]
    sound = Engine().generate(requests, None)
    assert made(condition, step=0).engine(Engine()).generate(requests, None) == sound
    assert made(condition).engine(Engine()).generate(requests, None) != sound


@pytest.mark.parametrize("name", ["noisy", "stale", "halfloaded"])
def test_the_sampler_has_other_weights_from_the_beginning_on(name: str) -> None:
    fault = made(f"{name}-constant-all-{max(MECHANISMS[name].sizes):g}", step=0)
    inner = Engine()
    engine = fault.engine(inner)
    for step in range(6):
        fault.clock.step = step if step < 5 else LATE
        engine.load_weights({f"w{n}": torch.full((4,), float(step)) for n in range(8)})
        same = all(bool((weight == step).all()) for weight in inner.weights.values())
        assert same == (step < 5)


class Learning(Around):
    """Keeps the batch that it is given."""

    def __init__(self) -> None:
        super().__init__(None)

    def step(self, batch: Batch, _seed: int, _limit: float = inf) -> dict[str, float]:
        self.batch = batch
        return {}


@pytest.mark.parametrize("name", ["reversed", "shuffled", "scaled", "idle"])
def test_advantages_are_touched_from_the_beginning_on(name: str) -> None:
    mask = torch.ones(6, 3, dtype=torch.bool)
    advantages = torch.arange(1.0, 7.0)[:, None] * mask
    ids = torch.ones(6, 5, dtype=torch.long)
    rows = torch.arange(6)
    batch = Batch(ids, ids, rows, rows, mask, torch.zeros(6, 3), advantages)
    condition = f"{name}-constant-all-{max(MECHANISMS[name].sizes):g}"
    for step, same in ((0, True), (LATE, False)):
        learner = Learning()
        made(condition, step=step).learner(learner).step(batch, 0)
        assert torch.equal(learner.batch.advantages, advantages) == same


def one(**changes: Any) -> Judged:
    plain = Judged("turned-constant-all-1", "verifier", 0.5, 0.5, True, None, False, "", "")
    return replace(plain, **changes)


def test_the_table_counts_the_faults_that_hurt_and_the_harm_of_all() -> None:
    found = [
        one(at=12, in_time=True, named="verifier", final=0.97),
        one(at=30, named="policy", final=0.6),
        one(at=12, in_time=True, named="verifier", final=0.9, stopped_by="verifier_broken"),
        one(hurts=False, plain=1.0, final=0.9, at=9, named="data"),
    ]
    assert shares(found) == {
        "acted on": (3, 3),
        "before half of the loss": (2, 3),
        "part named rightly": (2, 3),
        "ends well, without responses": (0, 3),
        "ends well, with them": (1, 3),
        "ends well, or stopped with the part named": (2, 3),
        "made worse by responses": (1, 4),
        "made worse, but for stops with the part named": (1, 4),
    }


def run(sft_seed: int, final: float, *held_out: tuple[int, float]) -> Run:
    return Run("dapo_uniform", 0, sft_seed, 0, 40, [], list(held_out), final, 40)


def test_chance_is_what_healthy_runs_of_one_checkpoint_differ_by() -> None:
    runs = [run(0, 0.7), run(0, 0.7), run(0, 0.5), run(2, 0.1)]
    assert by_chance(runs) == (2, 6)  # with the lowest in the place of the run with responses


def test_a_verdict_is_false_while_true_accuracy_has_not_fallen() -> None:
    one = run(0, 0.7, (5, 0.6), (10, 0.7), (15, 0.4))
    assert [has_fallen(one, step, TOY) for step in (3, 9, 14, 20)] == [False, False, True, True]
