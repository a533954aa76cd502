"""Grounds of the health trial: what runs on the real model, and that the runs of the demo's model stay the same."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from factories import prompts

from components.config import Settings
from components.errors import InputError
from components.scheduling import Uniform
from components.types import Completion, Score
from tests.benchmarks.health.__main__ import _parser, named
from tests.benchmarks.health.arms import DEFAULT_RULES, arms_of
from tests.benchmarks.health.faults import FAULTS
from tests.benchmarks.health.faults.base import LATE
from tests.benchmarks.health.faults.mismatch_stale import aside
from tests.benchmarks.health.generated.base import ONSETS
from tests.benchmarks.health.generated.drawing import conditions, fault_of
from tests.benchmarks.health.grounds import GROUNDS, LLM, TOY, Ground
from tests.benchmarks.health.healthy import HEALTHY
from tests.benchmarks.health.judged import BASE
from tests.benchmarks.health.plan import runs, sft_seed_of
from tests.benchmarks.health.training import planted
from tests.recipes import recipe_settings

every_ground = pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)


def settings_of(folder: Path, ground: Ground, condition: str) -> Settings:
    """The settings of a run as the trial puts them together, with responses."""
    healthy = ground.healthy.get(condition, ground.healthy[BASE])
    [arm] = arms_of("respond", DEFAULT_RULES)
    tree = healthy.settings(3, planted(condition, 3, ground).changes_on(ground), arm.changes, base=ground.settings)
    return recipe_settings(folder, healthy.recipe, str(ground.config), {}, tree)


@pytest.mark.slow
@every_ground
def test_every_run_of_the_plan_has_valid_settings_of_its_ground(tmp_path: Path, ground: Ground) -> None:
    for condition in {condition for condition, _ in runs(ground)}:
        found = settings_of(tmp_path, ground, condition)
        assert found.train.eval_every == ground.eval_every, "true accuracy is measured where the dev split is"
        assert found.audit.second is not None, "a rule may ask a second verifier"
        assert found.threads == 1
    healthy = settings_of(tmp_path, ground, BASE)
    assert (healthy.learner.lr, healthy.rollout.max_new_tokens) == (ground.lr, ground.room)
    assert max(*ground.onsets, *ground.late) < healthy.train.steps - ground.eval_every


@every_ground
def test_faults_are_planted_in_the_same_condition_on_every_ground(ground: Ground) -> None:
    assert next(iter(ground.healthy)) == BASE
    assert not set(ground.healthy) & set(ground.faults)
    assert not [name for name in ground.faults if ground.why_left_out(name)]


@every_ground
def test_a_ground_has_healthy_runs_of_every_checkpoint(ground: Ground) -> None:
    seeds = [seed for condition, seed in runs(ground) if condition == BASE]
    for sft_seed in ground.sft_seeds:
        assert sum(sft_seed_of(BASE, seed, ground) == sft_seed for seed in seeds) >= 2


def test_the_toys_plan_and_settings_are_what_they_were(tmp_path: Path) -> None:
    assert (set(TOY.healthy), set(TOY.faults)) == (set(HEALTHY), set(FAULTS))
    assert {condition: sum(c == condition for c, _ in runs()) for condition in (BASE, "grpo", "too_hard")} == {
        BASE: 10,
        "grpo": 4,
        "too_hard": 10,
    }
    assert [sft_seed_of("too_hard", seed) for seed in range(4)] == [0, 2, 4, 0]
    assert sft_seed_of("dapo_plateau", 2) == 1
    hot = settings_of(tmp_path, TOY, "hot_symmetric_clip").learner
    assert (hot.lr, hot.updates_per_step) == (2e-3, 4)
    assert settings_of(tmp_path, TOY, "length_gaming").rollout.max_new_tokens == 60


@pytest.mark.parametrize("condition", [*FAULTS, *list(conditions())[::7]])
def test_a_fault_on_the_toy_is_the_fault_as_it_is_made(condition: str) -> None:
    made: Any = FAULTS[condition](5) if condition in FAULTS else fault_of(condition, 5)
    found: Any = planted(condition, 5)
    assert (found.begins, getattr(found, "form", None)) == (made.begins, getattr(made, "form", None))
    assert getattr(found, "limit", None) == getattr(made, "limit", None)


def test_faults_begin_earlier_and_rise_faster_in_shorter_runs() -> None:
    for seed in range(20):
        assert planted("nan_burst", seed, LLM).begins in LLM.late != LATE
        drifting: Any = planted("turned-drifting-all-1", seed, LLM)
        assert drifting.begins in LLM.onsets != ONSETS
        strengths = [drifting.form.strength(since) for since in range(LLM.rise)]
        assert strengths[-1] == 1.0 and all(low < high for low, high in pairwise(strengths))
    assert planted("template_mismatch", 0, LLM).begins == 0


@pytest.mark.parametrize(("ground", "lengths"), [(TOY, (11, 12)), (LLM, (3, 4))])
def test_a_verifier_by_length_parts_the_answers_of_the_ground(ground: Ground, lengths: tuple[int, int]) -> None:
    fault: Any = planted("bylength-constant-all-1", 0, ground)
    answers = [Completion((7,) * length, (0.0,) * length, "stop", "") for length in lengths]
    assert [fault.misjudged(Score(0.0), answer).accuracy for answer in answers] == [1.0, 0.0]


@pytest.mark.parametrize("condition", [name for name in FAULTS if LLM.why_left_out(name)])
def test_a_fault_that_makes_no_sense_on_a_ground_is_refused_with_the_reason(condition: str) -> None:
    assert planted(condition, 0, TOY) is not None
    with pytest.raises(InputError, match=f"{condition} is not run on the ground llm: "):
        planted(condition, 0, LLM)


def test_a_prompt_is_repeated_also_where_the_teacher_is_always_right() -> None:
    fault = planted("duplicate_flood", 0, LLM)
    schedule = fault.schedule(Uniform(fault.prompts(prompts(20)), seed=0))
    fault.clock.step = fault.begins
    assert len({prompt.text for prompt in schedule.next(8)}) <= 3


def test_the_hot_rate_is_that_of_the_ground_many_times(tmp_path: Path) -> None:
    assert settings_of(tmp_path, LLM, "hot_rate").learner.lr == pytest.approx(7.5 * LLM.lr)
    assert "hot_rate" not in {condition for condition, _ in runs(TOY)}


def test_the_command_line_names_a_ground_and_leaves_out_what_it_leaves_out() -> None:
    arguments = ["run", "--results", "x", "--generated", "seen", "--count", "5"]
    toy, llm = (_parser().parse_args([*arguments, *more]) for more in ([], ["--ground", "llm"]))
    assert (toy.ground, llm.ground) == ("toy", "llm")
    first = list(conditions("seen"))[:5]
    assert named(toy, TOY) == named(llm, LLM) == first
    assert _parser().parse_args(["healthy", "--results", "x", "--ground", "llm"]).ground == "llm"


def test_the_real_models_task_has_several_families() -> None:
    source = yaml.safe_load(LLM.config.read_text())["data"]["source"]
    assert 2 <= len(source["datasets"]) <= 4


def test_weights_that_are_put_aside_do_not_change_any_more() -> None:
    import torch

    weights = {"w": torch.arange(4.0), "half": torch.ones(2, dtype=torch.bfloat16)}
    kept = aside(weights)
    weights["w"] += 1
    assert torch.equal(kept["w"], torch.arange(4.0)) and kept["half"].dtype == torch.bfloat16
