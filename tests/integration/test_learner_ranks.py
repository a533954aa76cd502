"""Learners in several real processes: the updates of one process, and state to the bit."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from components.config import Settings
from components.learner.base import Learner
from components.learner.state import read_tensors

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))

from tests.integration.ranks import (
    KINDS,
    OBJECTIVES,
    alone,
    batch,
    content,
    difference,
    how,
    learning,
    near,
    saved,
    steps,
    written,
)
from tests.tiers import slow_but

pytestmark = pytest.mark.integration


@dataclass
class Started:
    """Ranks that several tests share; each begins by loading what they were started with."""

    learner: Learner
    begin: Path
    settings: Settings

    def afresh(self, chosen: Settings | None = None) -> Learner:
        chosen = chosen or self.settings
        self.learner.configure(
            self.settings.learner.model_copy(update={"updates_per_step": chosen.learner.updates_per_step}),
            chosen.objective,
        )
        self.learner.load(self.begin)
        return self.learner


@pytest.fixture(scope="module", params=slow_but(KINDS, "zero-2"))
def started(request, tmp_path_factory) -> Iterator[Started]:
    folder = tmp_path_factory.mktemp(request.param)
    chosen = how(**KINDS[request.param])
    with learning(chosen, folder) as learner:
        (folder / "begin").mkdir()
        learner.save(folder / "begin")
        yield Started(learner, folder / "begin", chosen)


# The same updates


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("updates", [1, 2])
def test_two_ranks_follow_the_loss_curve_of_one_process_to_1e_5(started, objective, updates):
    options = {"objective": objective, "updates": updates}
    one, two = alone(**options), started.afresh(how(**options))
    assert near(steps(two, range(8)), steps(one, range(8)))
    assert difference(two.weights(), one.weights()) < 1e-5


def test_log_probabilities_come_back_in_the_order_of_the_rows(started):
    two, one = started.afresh(), alone()
    mask = batch(0).response_mask
    assert torch.allclose(two.logprobs(batch(0))[mask], one.logprobs(batch(0))[mask], atol=1e-5)


def test_an_update_above_the_limit_of_the_norm_changes_neither_weights_nor_moments(started):
    learner = started.afresh()
    steps(learner, [0])
    before = dict(learner.weights())
    skipped = steps(learner, [1], limit=1e-6)[0]
    assert (skipped["updates_skipped"], skipped["nonfinite"]) == (2, 0)
    assert difference(learner.weights(), before) == 0
    after, weights = steps(learner, [2, 3]), dict(learner.weights())
    again = started.afresh()
    steps(again, [0])
    assert steps(again, [2, 3]) == after
    assert difference(again.weights(), weights) == 0


def test_a_gradient_that_is_not_a_number_changes_nothing_and_is_counted(started, tmp_path):
    learner, broken = started.afresh(), tmp_path / "broken"
    tensors = read_tensors(saved(learner, tmp_path / "whole") / "learner")
    tensors["weight/model.norm.weight"][0] = math.nan
    written(broken, tensors)
    shutil.copy(tmp_path / "whole" / "learner.json", broken)
    learner.load(broken)
    before = content(saved(learner, tmp_path / "before"))
    signals = steps(learner, [0])[0]
    assert signals["updates_skipped"] == signals["nonfinite"] == 2
    assert content(saved(learner, tmp_path / "after")) == before


def test_another_learning_rate_reaches_the_ranks(started):
    learner = started.afresh()
    learner.configure(started.settings.learner.model_copy(update={"lr": 1e-5}), started.settings.objective)
    assert steps(learner, [0])[0]["lr"] == pytest.approx(1e-5 * 2 / 3)


def test_ranks_that_rest_between_updates_learn_the_same(started):
    if started.settings.learner.kind == "deepspeed":
        pytest.skip("ZeRO keeps its moments where they are; the settings refuse it")
    expected = steps(started.afresh(), range(3))
    learner, found = started.afresh(), []
    for number in range(3):
        learner.rest()
        found += steps(learner, [number])
    assert found == expected


# State


def test_continuing_from_a_saved_state_equals_not_stopping_to_the_bit(started, tmp_path):
    learner = started.afresh()
    steps(learner, [0, 1])
    folder = saved(learner, tmp_path / "saved")
    expected, weights = steps(learner, [2, 3]), dict(learner.weights())
    learner.load(folder)
    assert steps(learner, [2, 3]) == expected
    assert difference(learner.weights(), weights) == 0


def test_weights_that_are_loaded_are_those_of_the_next_pass(started):
    learner, mask = started.afresh(), batch(0).response_mask
    before = learner.logprobs(batch(0))
    steps(learner, [0, 1])
    moved = learner.logprobs(batch(0))
    assert (moved - before)[mask].abs().max() > 1e-3
    learner.load(started.begin)
    assert torch.equal(learner.logprobs(batch(0)), before)


def test_a_state_is_written_as_it_was_copied_while_the_ranks_go_on(started, tmp_path):
    learner = started.afresh()
    steps(learner, [0])
    written = learner.snapshot(tmp_path)
    later = steps(learner, [1, 2])
    written()
    learner.load(tmp_path)
    assert steps(learner, [1, 2]) == later


@pytest.mark.parametrize(
    "file", [f"learner/shard-0000{rank}-of-00002.safetensors" for rank in (1, 2)] + ["learner.json"]
)
def test_a_state_that_cannot_be_written_is_reported_and_the_ranks_continue(started, file, tmp_path):
    learner = started.afresh()
    (tmp_path / file).mkdir(parents=True)
    written = learner.snapshot(tmp_path)
    steps(learner, [0])
    with pytest.raises(OSError, match=f"Is a directory.*{file}"):
        written()
    steps(learner, [1])
    assert len(content(saved(learner, tmp_path / "another"))) == 3


def test_the_state_is_that_of_the_learner_in_one_process_and_goes_both_ways(started, tmp_path):
    one, two = alone(), started.afresh()
    steps(one, [0, 1]), steps(two, [0, 1])
    of_one, of_two = saved(one, tmp_path / "one"), saved(two, tmp_path / "two")
    shards = [f"learner/shard-0000{rank}-of-00002.safetensors" for rank in (1, 2)]
    assert sorted(content(of_two)) == ["learner.json", *shards]
    assert difference(read_tensors(of_two / "learner"), read_tensors(of_one / "learner")) < 1e-5
    one.load(of_two)
    expected = steps(two, [2, 3])
    two.load(of_two)
    assert near(steps(one, [2, 3]), expected)
    two.load(of_one)
    assert near(steps(two, [2, 3]), expected)


def test_a_saved_policy_is_a_checkpoint_of_the_present_weights(started, tmp_path):
    learner = started.afresh()
    steps(learner, [0])
    learner.save_policy(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    assert difference(learner.weights(), weights) == 0
