"""Stage `dpo`: what it leaves, where its pairs come from, and that stopping in between changes no byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import Judge, parity, policy, prompts, settings, workspace

from components.config import Settings
from components.config.root import Settings as Root
from components.dpo.dataset import read_pairs
from components.dpo.pairs import Answer, Pair
from components.dpo.trainer import DpoTrainer
from components.errors import InputError
from components.evaluation import answering
from components.files import append_line, manifest, read_json, read_jsonl, sha256_file, sha256_tree, write_jsonl
from components.layout import Layout
from components.policy import load_policy
from components.resume import ResumeState
from components.stages import dpo as stage
from components.stages import train as train_stage
from components.training import assembly

DPO = {"steps": 5, "batch_size": 3, "lr": 1e-2, "warmup": 1, "checkpoint_every": 2, "held_out": 0.3}


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.fixture(autouse=True)
def _judged_by_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "Scorer", lambda *_: Judge(parity))


def chosen_settings(**changes: Any) -> Settings:
    return settings(dpo={**DPO, **changes})


def prepared(root: Path, count: int = 10) -> Layout:
    """What the stages before leave: splits, a checkpoint under both names, and pairs."""
    layout = workspace(root)
    policy().save(layout.train_checkpoint)
    micro = policy()
    rows = [
        Pair(p.id, 0, p.text, micro.encode_prompt(p.text), *(Answer(t, micro.encode_answer(t)) for t in ("#1", "#2")))
        for p in prompts(count)
    ]
    write_jsonl(layout.pairs, [pair.to_row() for pair in rows])
    return layout


def run(root: Path, chosen: Settings | None = None) -> Layout:
    layout = Layout(root) if (root / "out").exists() else prepared(root)
    stage.run(chosen or chosen_settings(), layout)
    return layout


def outputs(layout: Layout) -> dict[str, str]:
    files = manifest(layout.out)
    return {name: files[name] for name in files if name.startswith("dpo")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """An uninterrupted run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "Scorer", lambda *_: Judge(parity))
        return run(tmp_path_factory.mktemp("finished"))


# What it leaves


def test_pairs_of_completions_with_tool_calls_are_learned_from(tmp_path):
    layout, micro = prepared(tmp_path), policy()
    rows = [Pair.from_row(row) for row in read_jsonl(layout.pairs)]
    called = Answer("<<1+1>>=2 #2", (*micro.encode_answer("<<1+1>>"), *micro.encode_answer("=2 #2")))
    own = replace(called, sampled=tuple(number < 4 for number, _ in enumerate(called.token_ids)))
    write_jsonl(layout.pairs, [replace(row, chosen=own).to_row() for row in rows])
    stage.run(settings(dpo=DPO, rollout={"tool": {"kind": "calculator"}}), layout)
    assert read_json(layout.dpo_metrics)["trained"]["chosen_change"] > 0


def test_without_steps_it_leaves_an_empty_log_and_says_so(tmp_path):
    layout = run(tmp_path, settings())
    assert list(manifest(layout.dpo)) == ["log.jsonl"]
    assert layout.dpo.joinpath("log.jsonl").read_text() == ""
    assert read_json(layout.dpo_metrics) == {"steps": 0}


def test_it_leaves_a_checkpoint_a_log_and_metrics(finished):
    metrics = read_json(finished.dpo_metrics)
    assert [row["step"] for row in read_jsonl(finished.dpo / "log.jsonl")] == list(range(5))
    assert metrics["checkpoint_sha256"] == sha256_tree(finished.dpo_checkpoint)
    assert metrics["start_sha256"] == sha256_tree(finished.sft_checkpoint)
    assert (metrics["steps"], metrics["start"]) == (5, "sft")
    before, after = (load_policy(p, settings().policy) for p in (finished.sft_checkpoint, finished.dpo_checkpoint))
    assert all(not (w == before.weights()[name]).all() for name, w in after.weights().items())


def test_pairs_that_are_held_out_are_measured_and_not_trained_on(finished):
    metrics = read_json(finished.dpo_metrics)
    assert metrics["pairs"]["trained"] + metrics["pairs"]["held_out"] == 10
    assert min(metrics["pairs"].values()) > 0
    assert {"loss", "reward_accuracy", "margin", "chosen_logp", "chosen_change", "rejected_logp"} < set(
        metrics["held_out"]
    )
    assert metrics["trained"]["loss"] == pytest.approx(
        sum(row["loss"] for row in read_jsonl(finished.dpo / "log.jsonl")) / 5
    )


def test_the_start_and_the_outcome_are_compared_on_the_same_held_out_prompts(finished):
    evaluation = read_json(finished.dpo_metrics)["evaluation"]
    assert set(evaluation) == {"prompts", "samples", "k", "ks", "start", "dpo", "gain", "greedy_gain"}
    assert evaluation["prompts"] == 4
    gain = evaluation["gain"]
    assert gain["mean"] == pytest.approx(evaluation["dpo"]["pass_at_1"] - evaluation["start"]["pass_at_1"])
    assert gain["low"] <= gain["mean"] <= gain["high"]


# Where it starts


def test_it_can_start_from_the_trained_policy(tmp_path):
    layout = prepared(tmp_path)
    (layout.sft_checkpoint / "model.safetensors").unlink()
    stage.run(chosen_settings(start="train"), layout)
    assert read_json(layout.dpo_metrics)["start_sha256"] == sha256_tree(layout.train_checkpoint)


# Where its pairs come from


def trained(root: Path, monkeypatch: pytest.MonkeyPatch, keep_pairs: int) -> Layout:
    """The train stage's own outputs."""
    monkeypatch.setattr(assembly, "Scorer", lambda *_: Judge(parity))
    layout = workspace(root)
    train_stage.run(settings(train={"steps": 2, "keep_pairs": keep_pairs}), layout)
    return layout


def test_training_stores_right_against_wrong_and_this_stage_takes_them(tmp_path, monkeypatch):
    layout = trained(tmp_path, monkeypatch, keep_pairs=2)
    found = read_pairs(layout.pairs)
    assert {pair.step for pair in found} <= {0, 1}
    assert 0 < len(found) <= 4
    assert all(sum(pair.chosen.token_ids) % 2 == 1 and sum(pair.rejected.token_ids) % 2 == 0 for pair in found)
    stage.run(chosen_settings(held_out=0.0), layout)
    assert read_json(layout.dpo_metrics)["pairs"] == {"trained": len(found), "held_out": 0}


def test_storing_pairs_changes_nothing_else_of_a_run(tmp_path, monkeypatch):
    with_pairs, without = (trained(tmp_path / str(keep), monkeypatch, keep) for keep in (4, 0))
    kept, none = manifest(with_pairs.train), manifest(without.train)
    assert {name for name in kept if kept[name] != none[name]} == {"pairs.jsonl"}
    assert without.pairs.read_bytes() == b""


def own_file(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    write_jsonl(tmp_path / "own.jsonl", rows or [{"prompt": "1+1=", "chosen": "#2", "rejected": "#3"}])
    return tmp_path / "own.jsonl"


def test_pairs_of_texts_from_elsewhere_take_the_place_of_the_runs_own(tmp_path):
    layout = prepared(tmp_path)
    layout.pairs.unlink()
    stage.run(chosen_settings(pairs={"path": str(own_file(tmp_path))}, held_out=0.0), layout)
    assert read_json(layout.dpo_metrics)["pairs"] == {"trained": 1, "held_out": 0}
    assert read_json(layout.dpo_metrics)["held_out"] == {}


def test_a_file_that_changed_after_the_settings_were_resolved_is_refused(tmp_path):
    layout, path = prepared(tmp_path), own_file(tmp_path)
    pinned = {"path": str(path), "sha256": sha256_file(path)}
    append_line(path, {"prompt": "a", "chosen": "b", "rejected": "c"})
    with pytest.raises(InputError, match="content has changed"):
        stage.run(chosen_settings(pairs=pinned), layout)


def test_a_run_that_left_no_pair_is_an_error_that_says_what_to_raise(tmp_path):
    layout = prepared(tmp_path, count=0)
    with pytest.raises(InputError, match="no pair to train on") as caught:
        stage.run(chosen_settings(), layout)
    assert "train.keep_pairs" in caught.value.how
    assert caught.value.where.endswith("pairs.jsonl")


def test_a_pair_that_is_too_long_is_refused_before_training(tmp_path):
    layout = prepared(tmp_path)
    rows = {"prompt": "1+1=", "chosen": "#" + "2" * 80, "rejected": "#3"}
    with pytest.raises(InputError, match="the model has 64 positions"):
        stage.run(chosen_settings(pairs={"path": str(own_file(tmp_path, rows))}), layout)
    assert not layout.dpo.exists()


@pytest.mark.parametrize(
    ("sections", "allowed"),
    [
        ({"dpo": {"steps": 1}, "train": {"keep_pairs": 0}}, False),
        ({"dpo": {"steps": 1, "pairs": {"path": "own.jsonl"}}, "train": {"keep_pairs": 0}}, True),
        ({"dpo": {"steps": 1}, "train": {"keep_pairs": 1}}, True),
        ({"dpo": {"steps": 0}, "train": {"keep_pairs": 0}}, True),
    ],
)
def test_steps_without_pairs_are_refused_before_anything_runs(sections, allowed):
    if allowed:
        assert Root.model_validate(sections).dpo.steps == sections["dpo"]["steps"]
    else:
        with pytest.raises(ValueError, match=r"raise train\.keep_pairs, or name a file under dpo\.pairs"):
            Root.model_validate(sections)


# Killed and started again


@pytest.mark.parametrize(("times", "after"), [(1, False), (1, True), (2, False), (2, True), (3, True)])
def test_killed_anywhere_it_ends_with_the_same_bytes(finished, tmp_path, monkeypatch, times, after):
    layout, calls, save = prepared(tmp_path), [], ResumeState.save

    def dying(self: ResumeState, *args: Any) -> None:
        calls.append(args)
        if len(calls) == times and not after:
            raise Killed
        save(self, *args)
        if len(calls) == times:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(ResumeState, "save", dying)
        stage.run(chosen_settings(), layout)
    assert not layout.dpo_metrics.exists()
    with (layout.state / "dpo" / "log.jsonl").open("ab") as log:
        log.write(b'{"step": 4, "lo')
    assert outputs(run(tmp_path)) == outputs(finished)


def test_a_finished_run_is_not_trained_again(finished, tmp_path, monkeypatch):
    run(tmp_path)
    monkeypatch.setattr(DpoTrainer, "step", lambda *_: pytest.fail("a step was repeated"))
    assert outputs(run(tmp_path)) == outputs(finished)


@pytest.mark.parametrize("changed", ["pairs", "start", "settings"])
def test_other_pairs_another_start_or_other_settings_begin_afresh(tmp_path, monkeypatch, changed):
    layout = run(tmp_path)
    if changed == "pairs":
        write_jsonl(layout.pairs, list(read_jsonl(layout.pairs))[:-1])
    elif changed == "start":
        (layout.sft_checkpoint / "extra.json").write_text("{}")
    chosen = chosen_settings(**({"beta": 0.2} if changed == "settings" else {}))
    steps, step = [], DpoTrainer.step
    monkeypatch.setattr(DpoTrainer, "step", lambda self, n: steps.append(n) or step(self, n))
    stage.run(chosen, layout)
    assert steps == list(range(5))
