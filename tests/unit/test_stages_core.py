"""The stages sft, triage, clusters and evaluate, and a foreign checkpoint through the whole pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
import torch
from factories import MICRO, Judge, gpt2, parity, policy, prompt, prompts, settings, workspace
from transformers import LlamaConfig, LlamaForCausalLM

from components.config import Settings, pin_inputs
from components.config.reading import merge
from components.errors import InputError
from components.evaluation import answering
from components.files import manifest, read_json, read_jsonl, sha256_tree, write_jsonl
from components.health.responses import Ledger
from components.layout import Layout
from components.policy import Policy, load_policy
from components.resume import ResumeState
from components.rollout import Sampling, build_engine
from components.scheduling import ranked_clusters
from components.stages import clusters, evaluate, run_stage, sft, triage
from components.stages import train as train_stage
from components.training import assembly
from components.types import Response

PLAIN = merge(MICRO, {"schedule": {"kind": "uniform"}})


@pytest.fixture
def judged_by_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in (triage, answering, assembly):
        monkeypatch.setattr(stage, "Scorer", lambda *_: Judge(parity))


# Training: what is handed on


def recorded(step: int, *prompts: str) -> dict[str, Any]:
    return {"step": step, "notes": {"pairs": [{"step": step, "prompt_id": prompt} for prompt in prompts]}}


@pytest.mark.parametrize(
    ("responses", "kept"),
    [
        ([], [(0, "a"), (0, "b"), (1, "b"), (2, "a"), (3, "c")]),
        ([Response(1, 2, "r", "rollback", "rollback", "why", back_to=1)], [(0, "a"), (0, "b"), (3, "c")]),
        ([Response(1, 3, "r", "stop", "stop", "why", back_to=2)], [(0, "a"), (0, "b"), (1, "b")]),
        ([Response(1, 3, "r", "intervene", "intervene", "why", quarantined=("a", "c"))], [(0, "b"), (1, "b")]),
    ],
)
def test_no_pair_of_an_undone_step_or_of_a_quarantined_prompt_is_handed_on(responses, kept):
    rows = [recorded(0, "a", "b"), recorded(1, "b"), recorded(2, "a"), recorded(3, "c")]
    pairs = train_stage.sound_pairs(rows, Ledger(tuple(responses)))
    assert [(pair["step"], pair["prompt_id"]) for pair in pairs] == kept
    assert all(row["notes"] == {} for row in rows)


# SFT


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def sft_outputs(layout: Layout) -> dict[str, str]:
    files = manifest(layout.out)
    return {name: files[name] for name in files if name.startswith("sft")}


def test_sft_leaves_a_checkpoint_its_log_and_its_metrics(tmp_path):
    layout = workspace(tmp_path)
    sft.run(settings(), layout)
    log, metrics = list(read_jsonl(layout.sft / "log.jsonl")), read_json(layout.sft_metrics)
    assert [row["step"] for row in log] == [0, 1, 2, 3]
    assert metrics["loss"] == pytest.approx(sum(row["loss"] for row in log) / 4)
    assert metrics["checkpoint_sha256"] == sha256_tree(layout.sft_checkpoint)
    loaded = load_policy(layout.sft_checkpoint, settings().policy)
    assert metrics["parameters"] == loaded.parameters
    assert loaded.decode(loaded.encode_answer("12+3=15")) == "12+3=15"


@pytest.mark.parametrize("when", ["before the first checkpoint", "after it", "after the last one"])
def test_sft_killed_and_started_again_ends_with_the_same_bytes(tmp_path, monkeypatch, when):
    whole, again = workspace(tmp_path / "whole"), workspace(tmp_path / "again")
    sft.run(settings(), whole)
    original, calls = ResumeState.save, []

    def dying(self: ResumeState, step: int, fill: Any) -> None:
        calls.append(step)
        if when != "before the first checkpoint":
            original(self, step, fill)
        if len(calls) == (2 if when == "after the last one" else 1):
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(ResumeState, "save", dying)
        sft.run(settings(), again)
    assert not again.sft_metrics.exists()
    sft.run(settings(), again)
    assert sft_outputs(again) == sft_outputs(whole)


def test_another_seed_trains_another_model(tmp_path):
    digests = set()
    for seed in (0, 1):
        layout = workspace(tmp_path / str(seed))
        sft.run(settings(seed=seed), layout)
        digests.add(read_json(layout.sft_metrics)["checkpoint_sha256"])
    assert len(digests) == 2


def test_an_empty_sft_split_is_an_error(tmp_path):
    layout = workspace(tmp_path)
    write_jsonl(layout.split("sft"), [])
    with pytest.raises(InputError, match="the SFT split is empty") as caught:
        sft.run(settings(), layout)
    assert "data.splits.sft" in str(caught.value.how)


def from_checkpoint(path: Path, steps: int = 0, sha256: str | None = None) -> Settings:
    model = {"kind": "checkpoint", "path": str(path), "sha256": sha256}
    return settings(policy={"model": model}, sft={"steps": steps})


def test_a_given_checkpoint_without_sft_steps_is_taken_as_it_is(tmp_path):
    layout = workspace(tmp_path)
    policy().save(tmp_path / "given")
    sft.run(from_checkpoint(tmp_path / "given"), layout)
    taken = load_policy(layout.sft_checkpoint, settings().policy).weights()
    assert all(torch.equal(w, policy().weights()[name]) for name, w in taken.items())
    assert "loss" not in read_json(layout.sft_metrics)


def test_a_given_checkpoint_can_be_trained_further(tmp_path):
    layout = workspace(tmp_path)
    policy().save(tmp_path / "given")
    sft.run(from_checkpoint(tmp_path / "given", steps=2), layout)
    assert len(list(read_jsonl(layout.sft / "log.jsonl"))) == 2
    given = (tmp_path / "given" / "model.safetensors").read_bytes()
    assert (layout.sft_checkpoint / "model.safetensors").read_bytes() != given


def test_a_checkpoint_with_another_digest_than_the_settings_name_is_refused(tmp_path):
    layout = workspace(tmp_path)
    policy().save(tmp_path / "given")
    with pytest.raises(InputError, match="content has changed"):
        sft.run(from_checkpoint(tmp_path / "given", sha256="0" * 64), layout)
    sft.run(from_checkpoint(tmp_path / "given", sha256=sha256_tree(tmp_path / "given")), layout)


def test_a_refused_checkpoint_leaves_nothing_behind(tmp_path):
    layout = workspace(tmp_path)
    before = manifest(layout.out)
    policy().save(tmp_path / "given")
    (tmp_path / "given" / "model.safetensors").rename(tmp_path / "given" / "pytorch_model.bin")
    with pytest.raises(InputError, match="pickle"):
        sft.run(from_checkpoint(tmp_path / "given"), layout)
    assert manifest(layout.out) == before


# Triage


@pytest.mark.usefixtures("judged_by_parity")
def test_triage_measures_the_checkpoint_and_accepts_it(tmp_path):
    layout = workspace(tmp_path)
    triage.run(settings(), layout)
    figures = read_json(layout.triage)
    assert (figures["verdict"], figures["prompts"], figures["k"]) == ("accept", 4, 4)
    assert 0 < figures["pass_at_1"] < figures["pass_at_k"] <= 1
    assert 1 < figures["entropy"] < 6


def test_a_refusal_of_triage_is_written_and_raises_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(triage, "Scorer", lambda *_: Judge(lambda _: 0.0))
    layout = workspace(tmp_path)
    triage.run(settings(), layout)
    figures = read_json(layout.triage)
    assert (figures["verdict"], figures["all_wrong_share"]) == ("refuse", 1.0)


@pytest.mark.usefixtures("judged_by_parity")
def test_triage_entropy_is_that_of_the_training_temperature(tmp_path):
    layout, entropies = workspace(tmp_path), []
    for temperature in (0.3, 3.0):
        triage.run(settings(rollout={"temperature": temperature}), layout)
        entropies.append(read_json(layout.triage)["entropy"])
    assert entropies[0] < 2 < 5 < entropies[1]


# Clusters


def test_every_training_prompt_has_a_cluster_and_a_rank_by_difficulty(tmp_path):
    layout = workspace(tmp_path)
    clusters.run(settings(), layout)
    rows, summary = list(read_jsonl(layout.clusters)), read_json(layout.clusters_metrics)
    assert [row["id"] for row in rows] == [p.id for p in prompts(12)]
    for part in summary["clusters"]:
        members = sorted((row for row in rows if row["cluster"] == part["cluster"]), key=lambda row: row["rank"])
        assert [row["rank"] for row in members] == list(range(part["size"]))
        assert [row["nll"] for row in members] == sorted(row["nll"] for row in members)
        assert part["nll_mean"] == pytest.approx(sum(row["nll"] for row in members) / part["size"], abs=1e-5)
        assert sum(part["families"].values()) == part["size"] >= settings().schedule.window
    assert sum(part["size"] for part in summary["clusters"]) == 12
    assert summary["k"] == len(summary["clusters"]) <= 3


def test_where_the_schedule_reads_no_cluster_all_prompts_are_one_and_no_model_is_loaded(tmp_path):
    layout = workspace(tmp_path)
    rmtree(layout.sft_checkpoint)
    clusters.run(settings(schedule={"kind": "uniform"}), layout)
    assert [(row["id"], row["cluster"]) for row in read_jsonl(layout.clusters)] == [(p.id, 0) for p in prompts(12)]
    assert read_json(layout.clusters_metrics)["read"] is False


def test_only_prompts_that_the_run_can_get_to_are_ranked(tmp_path):
    layout = workspace(tmp_path)
    clusters.run(settings(clusters={"prompts": 9, "k": 2}), layout)
    assert {row["id"] for row in read_jsonl(layout.clusters)} < {p.id for p in prompts(12)}
    assert len(list(read_jsonl(layout.clusters))) == 9


def test_clustering_repeats_to_the_byte(tmp_path):
    one, two = workspace(tmp_path / "one"), workspace(tmp_path / "two")
    for layout in (one, two):
        clusters.run(settings(), layout)
    assert manifest(one.out) == manifest(two.out)


def test_the_schedule_gets_the_clusters_easiest_first(tmp_path):
    layout = workspace(tmp_path)
    ranked = ranked_clusters(prompts(12), layout)
    assert {k: [p.id for p in members] for k, members in ranked.items()} == {
        k: [f"p{i:03d}" for i in range(k, 12, 3)] for k in range(3)
    }


# Evaluation


@pytest.mark.usefixtures("judged_by_parity")
def test_evaluation_of_an_unchanged_policy_finds_no_gain_and_that_four_prompts_say_little(tmp_path):
    layout = workspace(tmp_path)
    policy().save(layout.train_checkpoint)
    evaluate.run(settings(), layout)
    figures = read_json(layout.evaluation)
    assert figures["sft"] == without_gains(figures["trained"])
    gain = figures["gain"]
    assert (gain["mean"], gain["low"], gain["small"]) == (0, -gain["high"], True)
    assert gain["high"] > 0.5
    assert figures["checkpoint_sha256"] == sha256_tree(layout.train_checkpoint)
    assert (figures["prompts"], figures["samples"]) == (4, 2)
    assert all(row["sft"] == row["trained"] for row in read_jsonl(layout.samples))


@pytest.mark.usefixtures("judged_by_parity")
def test_evaluation_shows_the_greedy_answers_of_both_policies(tmp_path):
    layout = workspace(tmp_path)
    inverted().save(layout.train_checkpoint)
    evaluate.run(settings(evaluation={"prompts": 6}), layout)
    rows = list(read_jsonl(layout.samples))
    assert [(row["id"], row["prompt"], row["answer"]) for row in rows] == [(p.id, p.text, p.answer) for p in prompts(6)]
    assert any(row["sft"]["text"] != row["trained"]["text"] for row in rows)
    engine = build_engine(policy(), settings().rollout)
    greedy = engine.generate([policy().encode_prompt(p.text) for p in prompts(6)], Sampling(1, 4, 0.0, seed=0))
    assert [row["sft"]["text"] for row in rows] == [completion.text for (completion,) in greedy]
    first = manifest(layout.out)
    evaluate.run(settings(evaluation={"prompts": 6}), layout)
    assert manifest(layout.out) == first


def without_gains(side: dict[str, Any], *names: str) -> dict[str, Any]:
    """The figures of one policy by itself: the gains of slices left out, or those of these names."""
    gains = names or ("gain", "gain_over_champion")

    def bare(slices: dict[str, Any]) -> dict[str, Any]:
        return {name: {k: v for k, v in row.items() if k not in gains} for name, row in slices.items()}

    return side | {kind: bare(side[kind]) for kind in ("families", "difficulty", "prompt_length", "sources")}


def inverted() -> Policy:
    """A policy that answers otherwise."""
    changed = policy()
    with torch.no_grad():
        for parameter in changed.model.parameters():
            parameter.mul_(-1.0)
    return changed


@pytest.mark.usefixtures("judged_by_parity")
def test_the_champion_answers_the_same_prompts_and_leaves_the_other_figures_alone(tmp_path):
    layout = workspace(tmp_path)
    inverted().save(layout.train_checkpoint)
    evaluate.run(settings(), layout)
    alone = read_json(layout.evaluation)
    policy().save(tmp_path / "champion")
    evaluate.run(settings(evaluation={"champion": {"path": str(tmp_path / "champion")}}), layout)
    figures = read_json(layout.evaluation)
    figures["trained"] = without_gains(figures["trained"], "gain_over_champion")
    assert {key: figures[key] for key in alone if key != "words"} == {k: v for k, v in alone.items() if k != "words"}
    assert [line for line in figures["words"] if line not in alone["words"]] == figures["words"][1:2]
    assert set(figures) - set(alone) == {"champion", "gain_over_champion", "greedy_gain_over_champion"}
    assert figures["champion"] == figures["sft"]
    assert figures["gain_over_champion"] == figures["gain"]


@pytest.mark.usefixtures("judged_by_parity")
def test_a_champion_of_another_architecture_gets_an_engine_of_its_own(tmp_path):
    layout = workspace(tmp_path)
    policy().save(layout.train_checkpoint)
    gpt2().save(tmp_path / "champion")
    evaluate.run(settings(evaluation={"champion": {"path": str(tmp_path / "champion")}}), layout)
    assert read_json(layout.evaluation)["champion"]["pass_at_1"] is not None


def test_a_champion_that_is_not_the_one_named_is_an_error(tmp_path):
    layout = workspace(tmp_path)
    policy().save(layout.train_checkpoint)
    policy().save(tmp_path / "champion")
    with pytest.raises(InputError, match="content has changed"):
        champion = {"path": str(tmp_path / "champion"), "sha256": "0" * 64}
        evaluate.run(settings(evaluation={"champion": champion}), layout)
    assert not layout.evaluation.exists()


def test_a_missing_checkpoint_is_an_error(tmp_path):
    with pytest.raises(InputError, match="folder not found"):
        evaluate.run(settings(), workspace(tmp_path))


# A foreign checkpoint and a foreign file of prompts


def llama() -> Policy:
    """Another architecture: untied embeddings, no chat template."""
    tokenizer = policy().tokenizer.__class__(
        tokenizer_object=policy().tokenizer.backend_tokenizer, eos_token="<|end|>", model_max_length=96
    )
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=96, bos_token_id=None, eos_token_id=1, tie_word_embeddings=False,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Policy(LlamaForCausalLM(config), tokenizer, chat=False)


@pytest.mark.slow
def test_a_llama_and_a_jsonl_file_go_through_the_whole_line(tmp_path):
    llama().save(tmp_path / "llama")
    rows = [{"q": prompt(i).text, "a": f"{prompt(i).text}#{prompt(i).answer}", "group": i % 2} for i in range(80)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"kind": "jsonl", "path": str(tmp_path / "rows.jsonl"), "question": "q", "answer": "a", "family": "group"}
    chosen = pin_inputs(Settings.model_validate(merge(PLAIN, {
        "data": {
            "source": {**source, "answer_pattern": "#(.+)$"},
            "splits": {"sft": 0.4, "train": 0.3, "dev": 0.1, "test": 0.2},
        },
        "policy": {"model": {"kind": "checkpoint", "path": str(tmp_path / "llama")}, "chat": False},
        "audit": {"max_false_positive": 0.2},
        "admission": {"min_distinct": 4},
        "triage": {"override": "a random policy knows nothing"},
        "train": {"steps": 2},
    })))  # fmt: skip
    layout = Layout(tmp_path / "run")
    for name in ("data", "audit", "sft", "admission", "triage", "clusters", "train", "evaluate", "gate", "report"):
        run_stage(name, chosen, layout)
    assert json.loads((layout.train_checkpoint / "config.json").read_text())["model_type"] == "llama"
    assert read_json(layout.triage)["verdict"] == "refuse"
    assert read_json(layout.train_metrics)["triage"] == "overridden"
    assert read_json(layout.evaluation)["trained"]["pass_at_1"] == 0
    assert read_json(layout.gate)["result"] == "fail"
    assert "a random policy knows nothing" in layout.report.read_text()
    signals = [row["signals"] for row in read_jsonl(layout.records)]
    assert [s["all_wrong_share"] for s in signals] == [1.0, 1.0]


@pytest.mark.usefixtures("judged_by_parity")
def test_a_llama_trains_with_an_engine_and_a_learner_that_agree(tmp_path):
    layout = workspace(tmp_path)
    llama().save(tmp_path / "llama")
    chosen = from_checkpoint(tmp_path / "llama").model_copy(update={"policy": plain_policy(tmp_path / "llama")})
    sft.run(chosen, layout)
    train_stage.run(chosen, layout)
    signals = [row["signals"] for row in read_jsonl(layout.records)]
    assert max(s["mismatch_max"] for s in signals) < 1e-4
    assert max(s["grad_norm"] for s in signals) > 0
    before, after = (load_policy(path, chosen.policy) for path in (layout.sft_checkpoint, layout.train_checkpoint))
    assert "lm_head.weight" in after.weights()
    assert all(not torch.equal(w, before.weights()[name]) for name, w in after.weights().items())


def plain_policy(path: Path) -> Any:
    return from_checkpoint(path).policy.model_copy(update={"chat": False})
