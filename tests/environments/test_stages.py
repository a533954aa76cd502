"""A run whose prompts are an environment's: every stage, and a training that was killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from factories import settings
from training_runs import killed, outputs, records

from components.config import Settings
from components.config.reading import merge
from components.data.prompts import read_prompts
from components.errors import InputError, NoCandidate
from components.files import read_json
from components.layout import Layout
from components.stages import run_stage
from components.stages import train as training
from tests.environments.conftest import SHAPE

GAME = {"kind": "verifiers", "target": "tests.environments.higher_lower", "rows": 36, "max_turns": 3}
BEFORE = ("data", "audit", "sft", "admission", "triage", "clusters")


def chosen(**sections: object) -> Settings:
    own = {
        "data": {"source": GAME, "splits": {"sft": 0.1, "train": 0.5, "dev": 0.2, "test": 0.2}},
        "policy": {"model": SHAPE.model_dump()},
        "reward": {
            "verifier": {"kind": "environment", "accuracy": "found", "rewards": ["early", "legal"]},
            "soft_overlong": None,
        },
        "audit": {"override": "the game is 60 lines long, and was read"},
        "admission": {"min_distinct": 4, "max_prompt_share": 1.0, "prompts": 2, "samples": 2},
        "triage": {"prompts": 2, "samples": 4, "override": "a policy without SFT finds the digit by chance"},
        "schedule": {"kind": "uniform"},
        "rollout": {"max_new_tokens": 24, "dynamic_sampling": None},
        "train": {"steps": 2, "checkpoint_every": 1, "eval_every": 2, "eval_prompts": 2, "eval_samples": 1},
        "evaluation": {"prompts": 2, "samples": 2},
    }
    return settings(**merge(own, sections))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    layout = Layout(tmp_path_factory.mktemp("run"))
    for stage in BEFORE:
        run_stage(stage, chosen(), layout)
    return layout


def test_tasks_are_prompts_and_open_in_words_of_their_own(run):
    prompts = [prompt for split in ("sft", "train", "dev", "test") for prompt in read_prompts(run.split(split))]
    assert len(prompts) == 36
    assert len({prompt.text for prompt in prompts}) == 36
    assert {prompt.source for prompt in prompts} == {"verifiers"}


def test_a_rubric_is_not_audited_and_that_is_a_failed_audit(run):
    audit = read_json(run.audit, how="")
    assert (audit["verdict"], len(audit["reasons"])) == ("fail", 1)
    with pytest.raises(NoCandidate, match="rubric of an environment judges episodes"):
        run_stage("train", chosen(audit={"override": ""}), run)


def test_a_killed_training_ends_with_the_same_bytes(run, tmp_path):
    whole, halted = (copied(run, tmp_path / name) for name in ("whole", "halted"))
    training.run(chosen(), whole)
    with killed("append", 1):
        training.run(chosen(), halted)
    training.run(chosen(), halted)
    assert outputs(halted) == outputs(whole)
    assert {"part_early", "metric_turns"} <= records(whole)[0]["signals"].keys()
    run_stage("dpo", chosen(dpo={"steps": 2, "batch_size": 2, "lr": 1e-3, "start": "train"}), whole)
    learned = read_json(whole.dpo_metrics)
    assert learned["trained"]["chosen_logp"] < 0 < learned["pairs"]["trained"]


def test_other_code_or_settings_of_an_environment_need_other_prompts(run):
    with pytest.raises(InputError, match="prompts are of this environment with other settings"):
        run_stage("triage", chosen(data={"source": {**GAME, "max_turns": 4}}), run)


def copied(run: Layout, folder: Path) -> Layout:
    shutil.copytree(run.out.parent, folder)
    return Layout(folder)
