"""Stages `sft` and `dpo` over several real processes: the updates of one process, and state to the bit."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from torch import Tensor

from components.config import Settings
from components.dpo.pairs import Answer, Pair
from components.dpo.trainer import DpoTrainer
from components.errors import EXIT_LOST, EXIT_STOPPED
from components.evaluation import answering
from components.files import manifest, read_json, read_jsonl, write_jsonl
from components.launch import Job
from components.launch.processes import ProcessLauncher, driver_log
from components.layout import Layout
from components.learner.supervised_leader import builder_of
from components.policy.lora import adapted
from components.policy.stored import Stored
from components.resume import ResumeState
from components.seeds import derive
from components.sft.trainer import SftTrainer
from components.stages import run_stage

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from factories import Judge, parity, policy, prompts, settings, workspace
from training_runs import Killed

from tests.integration.ranks import (
    KINDS,
    difference,
    environment,
    family,
    following,
    forget_groups,
    how,
    running,
)
from tests.tiers import slow_but

pytestmark = pytest.mark.integration

LORA = {"rank": 4, "alpha": 8}
SFT = {"steps": 6, "batch_size": 3, "lr": 1e-2, "warmup": 2, "checkpoint_every": 2}
DPO = {"steps": 6, "batch_size": 3, "lr": 1e-3, "warmup": 2, "beta": 0.5, "checkpoint_every": 2, "held_out": 0.2}
CASES = [
    (stage, kind, lora)
    for stage in ("sft", "dpo")
    for kind in ("fsdp2", "zero-2", "zero-3")
    for lora in ("full", "lora")
]


def chosen_settings(kind: str | None, lora: str = "full", **sections: Any) -> Settings:
    spread = {} if kind is None else KINDS[kind]
    base = how(**spread, lora=LORA if lora == "lora" else None)
    sections = {"sft": SFT, "dpo": {**DPO, "micro_batch_tokens": 64}, **sections}
    return settings(**{**base.model_dump(mode="json", include={"learner", "launch", "policy"}), **sections})


def pairs(count: int) -> list[Pair]:
    """Answers of different lengths: the ranks make different numbers of passes."""
    micro = policy()

    def answer(text: str) -> Answer:
        return Answer(text, micro.encode_answer(text))

    return [
        Pair(p.id, 0, p.text, micro.encode_prompt(p.text), answer("#1"), answer("#2" + "3" * (i % 4)))
        for i, p in enumerate(prompts(count))
    ]


Outcome = tuple[list[dict[str, float]], dict[str, float], dict[str, Tensor]]


def learned(stage: str, chosen: Settings) -> Outcome:
    """Some steps of a stage's trainer: its log, what it measures afterwards, and the weights."""
    own = adapted(policy(), chosen.policy.lora, derive(chosen.seed, "lora"))
    trainer: SftTrainer | DpoTrainer
    if stage == "sft":
        trainer = SftTrainer(own, prompts(8), chosen.sft, chosen.seed, build=builder_of(chosen))
    else:
        found = pairs(8)
        trainer = DpoTrainer(own, found[:6], chosen.dpo, chosen.seed, found[6:], build=builder_of(chosen))
    with closing(trainer.learner):
        log = [trainer.step(step) for step in range(6)]
        measured = trainer.measure(found[6:]) if isinstance(trainer, DpoTrainer) else {}
        with TemporaryDirectory() as folder:
            trainer.learner.save_policy(Path(folder))
            weights = dict(Stored.folder(Path(folder)))
    return log, measured, weights


@pytest.mark.parametrize(("stage", "kind", "lora"), slow_but(CASES, ("dpo", "fsdp2", "full")))
def test_two_ranks_follow_the_loss_curve_of_one_process_to_1e_5(stage, kind, lora, tmp_path):
    log, measured, weights = learned(stage, chosen_settings(None, lora))
    chosen = chosen_settings(kind, lora)
    forget_groups()
    with following(chosen, tmp_path):
        spread_log, spread_measured, spread_weights = learned(stage, chosen)
    assert losses(spread_log) == pytest.approx(losses(log), rel=1e-5)
    assert spread_measured == pytest.approx(measured, rel=1e-5, abs=1e-5)
    assert difference(spread_weights, weights) < 2e-5


def losses(log: Sequence[dict[str, float]]) -> list[float]:
    return [row["loss"] for row in log]


@pytest.mark.slow
def test_a_rank_without_a_row_makes_the_passes_of_the_others(tmp_path):
    one, two = (chosen_settings(kind, sft={**SFT, "batch_size": 1}) for kind in (None, "zero-3"))
    forget_groups()
    with following(two, tmp_path):
        spread = learned("sft", two)
    assert losses(spread[0]) == pytest.approx(losses(learned("sft", one)[0]), rel=1e-5)


# The stages


def prepared(root: Path, chosen: Settings) -> tuple[Layout, Settings]:
    """What both stages need: an SFT split and pairs; and a checkpoint, from which both of them start."""
    layout = workspace(root)
    policy().save(layout.train_checkpoint)
    write_jsonl(layout.pairs, [pair.to_row() for pair in pairs(10)])
    model = {"kind": "checkpoint", "path": str(layout.train_checkpoint)}
    section = {**chosen.policy.model_dump(mode="json"), "model": model}
    return layout, Settings.model_validate({**chosen.model_dump(mode="json"), "policy": section})


def outputs(layout: Layout, stage: str) -> dict[str, str]:
    return {name: digest for name, digest in manifest(layout.out).items() if name.startswith(stage)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "kind", "lora"), [("sft", "fsdp2", "lora"), ("sft", "zero-3", "full"), ("dpo", "fsdp2", "full")]
)
def test_a_stage_that_is_killed_ends_with_the_bytes_of_one_that_is_not(stage, kind, lora, tmp_path, monkeypatch):
    monkeypatch.setattr(answering, "Scorer", lambda *_: Judge(parity))
    adapter = {**LORA, "dropout": 0.2} if lora == "lora" else None
    chosen = chosen_settings(kind, policy={"lora": adapter})

    layout, own = prepared(tmp_path / "run", chosen)

    def run() -> None:
        forget_groups()
        with following(own, tmp_path):
            run_stage(stage, own, layout)

    run()
    expected = outputs(layout, stage)
    for folder in (layout.state, layout.out / stage):
        shutil.rmtree(folder)
    save, saved = ResumeState.save, []

    def dying(self: ResumeState, *args: Any) -> None:
        save(self, *args)
        saved.append(args)
        if len(saved) == 2:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(ResumeState, "save", dying)
        run()
    assert not (layout.out / stage).exists()
    run()
    assert outputs(layout, stage) == expected
    assert not running(family())


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Stage `sft` of two ranks under torchrun, which has made some steps."""
    layout, chosen = prepared(tmp_path, chosen_settings("fsdp2", sft={**SFT, "steps": 400}))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    launcher = ProcessLauncher()
    number = launcher.submit(Job("sft", chosen, tmp_path))
    log, until = layout.state / "sft" / "log.jsonl", time.monotonic() + 120
    while not log.exists() or len(log.read_bytes().splitlines()) < 3:
        assert time.monotonic() < until, driver_log(layout).read_text()
        time.sleep(0.05)
    yield launcher, number, layout
    launcher.cancel(number)


def rank(number: int):
    return [process for process in family() if environment(process)["RANK"] == str(number)][-1]


@pytest.mark.slow
def test_sft_whose_rank_is_killed_ends_as_lost_and_leaves_no_process(job):
    launcher, number, _ = job
    everyone = family()
    rank(1).kill()
    status = launcher.wait(number, poll=0.1)
    assert (status.state, status.exit_code) == ("failed", EXIT_LOST)
    assert "learner-1 was lost" in status.message
    assert not running(everyone)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_sft_of_which_a_rank_is_asked_to_stop_writes_its_checkpoint(job, number):
    launcher, name, layout = job
    rank(number).send_signal(signal.SIGTERM)
    status = launcher.wait(name, poll=0.1)
    assert status.exit_code == EXIT_STOPPED
    steps = len(list(read_jsonl(layout.state / "sft" / "log.jsonl")))
    assert f"the checkpoint of step {steps} is whole" in status.message
    assert (layout.state / "sft" / f"step-{steps:06d}" / "sft" / "shard-00002-of-00002.safetensors").is_file()
    assert not layout.sft_metrics.exists()


@pytest.mark.slow
def test_ranks_of_a_stage_that_learns_nothing_end_with_rank_0(tmp_path, monkeypatch):
    layout, chosen = prepared(tmp_path, chosen_settings("fsdp2", dpo={"steps": 0}))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    launcher = ProcessLauncher()
    status = launcher.wait(launcher.submit(Job("dpo", chosen, tmp_path)), poll=0.1)
    assert status.state == "succeeded", status.message
    assert read_json(layout.dpo_metrics) == {"steps": 0}
    assert "there was nothing to learn" in (layout.logs / "learner-1.log").read_text()
    assert not running(family())


@pytest.mark.slow
def test_the_launcher_starts_the_ranks_of_dpo_too(tmp_path, monkeypatch):
    layout, chosen = prepared(tmp_path, chosen_settings("fsdp2"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    launcher = ProcessLauncher()
    status = launcher.wait(launcher.submit(Job("dpo", chosen, tmp_path)), poll=0.1)
    assert status.state == "succeeded", status.message
    assert read_json(layout.dpo_metrics)["steps"] == DPO["steps"]
    assert "rank 0 has ended the run" in (layout.logs / "learner-1.log").read_text()
    assert not running(family())
