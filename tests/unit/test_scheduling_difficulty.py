"""Difficulty against success, and clusters by another model than the policy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from factories import group, policy, prompts, settings, workspace
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from components.clusters.difficulty import BINS, correlation, difficulty_report, histogram, warning
from components.clusters.embedding import SentenceEmbedder
from components.config import pin_inputs
from components.config.scheduling import ModelEmbedding
from components.errors import InputError
from components.files import read_json, read_jsonl, sha256_tree, write_json
from components.sft.triage import Step, triage
from components.stages import clusters

TEXTS = ["1+1=", "37+1=\n38#38", "a"]


# Difficulty


def rows(count: int) -> list[dict]:
    """Two clusters, ranks as the nll has them."""
    return [{"id": f"p{i}", "cluster": i % 2, "rank": i // 2, "nll": float(i)} for i in range(count)]


@pytest.mark.parametrize(
    ("rate", "found"),
    [(0.0, "0"), (0.01, "0 to 1/5"), (0.2, "1/5 to 2/5"), (0.5, "2/5 to 3/5"), (0.9375, "4/5 to 1"), (1.0, "1")],
)
def test_worked_bins_of_success(rate, found):
    assert histogram([rate]) == [{"success": name, "prompts": int(name == found)} for name in BINS]


@given(st.lists(st.integers(0, 16)))
def test_every_prompt_is_in_one_bin(rights):
    assert sum(part["prompts"] for part in histogram([right / 16 for right in rights])) == len(rights)


def test_an_order_that_agrees_with_success_is_negative_and_says_nothing():
    report = difficulty_report(rows(40), {f"p{i}": 1 - i / 40 for i in range(40)})
    assert report["measured"] == 40
    assert report["nll"]["rho"] == -1
    assert report["rank"]["rho"] == pytest.approx(-1, abs=0.01)
    assert report["warning"] == ""


def test_only_prompts_that_were_measured_count():
    report = difficulty_report(rows(100), {"p0": 1.0, "p99": 0.5, "unknown": 0.0})
    assert (report["measured"], sum(part["prompts"] for part in report["histogram"])) == (2, 2)
    assert "2 training prompts is too little" in report["warning"]


@pytest.mark.parametrize(
    ("measured", "rho", "words"),
    [
        (29, -0.9, "raise triage.prompts"),
        (128, -0.5, ""),
        (128, -0.1, ""),
        (128, -0.09, "is random"),
        (128, 0.09, "is random"),
        (128, 0.3, "upside down"),
    ],
)
def test_a_weak_order_an_inverted_one_and_too_few_prompts_are_warned_of(measured, rho, words):
    said = warning(range(measured), range(measured), {"rho": rho, "low": rho - 0.1, "high": rho + 0.1})
    assert words in said
    assert bool(said) == bool(words)


@pytest.mark.parametrize(("success", "words"), [(0.0, "success 0"), (0.5, "success 0.5"), (1.0, "success 1")])
def test_where_all_have_one_success_that_is_the_reason_and_not_their_number(success, words):
    said = difficulty_report(rows(500), {f"p{i}": success for i in range(500)})["warning"]
    assert f"all 500 training prompts that were measured have {words}:" in said
    assert "triage.prompts" not in said


def test_where_all_have_one_rank_that_is_the_reason():
    alone = [{"id": f"p{i}", "cluster": i, "rank": 0, "nll": float(i)} for i in range(40)]
    said = difficulty_report(alone, {f"p{i}": i / 40 for i in range(40)})["warning"]
    assert "all 40 training prompts that were measured have the same rank in their clusters" in said


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 8)), min_size=4, max_size=40))
def test_the_correlation_is_pearsons_of_the_ranks_inside_its_interval(pairs):
    order, rates = [float(a) for a, _ in pairs], [b / 8 for _, b in pairs]
    found = correlation(order, rates)
    if len(set(order)) == 1 or len(set(rates)) == 1:
        assert found is None
        return
    assert found["rho"] == pytest.approx(np.corrcoef(rankdata(order), rankdata(rates))[0, 1], abs=1e-5)
    assert -1 <= found["low"] <= found["rho"] + 1e-5 <= found["high"] + 2e-5 <= 1 + 2e-5


def test_worked_interval_of_a_correlation():
    """rho 0.5 of 103 pairs: standard error sqrt(1.125 / 100) on Fisher's scale."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        order, rates = rng.standard_normal(103), rng.random(103)
        rates = rates + 0.25 * order
        if abs((found := correlation(order.tolist(), rates.tolist()))["rho"] - 0.5) < 0.01:
            break
    reach = 1.959964 * (1 + found["rho"] ** 2 / 2) ** 0.5 / 10
    assert found["low"] == pytest.approx(np.tanh(np.arctanh(found["rho"]) - reach), abs=1e-5)
    assert found["high"] == pytest.approx(np.tanh(np.arctanh(found["rho"]) + reach), abs=1e-5)


def test_the_stage_writes_the_report_and_warns_a_schedule_that_walks(tmp_path, capsys):
    layout = workspace(tmp_path, train=36)
    clusters.run(settings(), layout)
    difficulty = read_json(layout.clusters_metrics)["difficulty"]
    assert difficulty["measured"] == 36
    capsys.readouterr()
    write_json(layout.triage, {**read_json(layout.triage), "success": {"p001": 0.5}})
    clusters.run(settings(), layout)
    assert "WARNING: the success of 1 training prompts is too little" in capsys.readouterr().err
    clusters.run(settings(schedule={"kind": "uniform"}), layout)
    assert "WARNING" not in capsys.readouterr().err


def test_the_stage_names_every_cluster_that_it_merged(tmp_path, capsys):
    layout = workspace(tmp_path)
    clusters.run(settings(clusters={"k": 6}, schedule={"kind": "ads", "window": 4, "active": 1}), layout)
    summary, said = read_json(layout.clusters_metrics), capsys.readouterr().err
    assert summary["merged"]
    assert summary["k"] + len(summary["merged"]) == 6
    for merge in summary["merged"]:
        assert merge["size"] < 4
        assert f"cluster {merge['cluster']} of k-means has {merge['size']} prompts" in said
        assert f"merged into cluster {merge['into']}" in said
        assert 0 <= merge["into"] < summary["k"]


def test_triage_keeps_the_success_of_every_prompt_that_could_be_scored():
    groups = [group([1.0, 0.0, None], prompt=prompts(3)[0]), group([None], prompt=prompts(3)[1])]
    figures = triage(groups, 1.0, Step(2, 1, 1), settings().triage)
    assert figures["success"] == {"p000": 0.5}


# Embedding


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "sentences"
    policy().save(path)
    return path


def embedder(path, **changes) -> SentenceEmbedder:
    return SentenceEmbedder(ModelEmbedding(kind="model", path=path, **changes))


def test_an_embedding_is_the_mean_of_the_last_hidden_states_whatever_else_is_in_the_batch(folder):
    tested, micro = embedder(folder), policy()
    together = tested.embed(TEXTS)
    for text, found in zip(TEXTS, together, strict=True):
        ids = micro.tokenizer(text)["input_ids"]
        with torch.no_grad():
            hidden = micro.model.base_model(torch.tensor([ids])).last_hidden_state[0].mean(0)
        assert found == pytest.approx(hidden.numpy(), abs=1e-5)


def test_a_text_is_cut_at_the_limit(folder):
    tested = embedder(folder, max_tokens=8)
    long, longer = tested.embed(["1+1=2#2 " * 20, "1+1=2#2 " * 30])
    assert long == pytest.approx(longer)


def test_the_clusters_follow_the_other_model_and_the_difficulty_stays_the_policys(tmp_path, folder):
    layout = workspace(tmp_path)
    clusters.run(settings(), layout)
    before = list(read_jsonl(layout.clusters))
    chosen = settings(clusters={"embedding": {"kind": "model", "path": str(folder)}})
    clusters.run(chosen, layout)
    after = list(read_jsonl(layout.clusters))
    assert [row["nll"] for row in after] == pytest.approx([row["nll"] for row in before], abs=1e-5)
    assert [row["id"] for row in after] == [p.id for p in prompts(12)]


def test_the_folder_is_pinned_with_the_other_inputs_and_a_changed_one_is_refused(tmp_path):
    path = tmp_path / "model"
    policy().save(path)
    pinned = pin_inputs(settings(clusters={"embedding": {"kind": "model", "path": str(path)}}))
    assert pinned.clusters.embedding.sha256 == sha256_tree(path)
    (path / "extra.txt").write_text("x")
    with pytest.raises(InputError, match="content has changed"):
        SentenceEmbedder(pinned.clusters.embedding)


def test_a_missing_folder_says_what_to_put_where(tmp_path):
    missing = settings(clusters={"embedding": {"kind": "model", "path": str(tmp_path / "none")}})
    for call in (lambda: pin_inputs(missing), lambda: SentenceEmbedder(missing.clusters.embedding)):
        with pytest.raises(InputError, match="input not found") as caught:
            call()
        assert str(tmp_path / "none") in caught.value.where
        assert "model.safetensors" in caught.value.how
        assert "clusters.embedding={kind: policy}" in caught.value.how


@pytest.mark.parametrize("damage", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_that_is_no_model_is_bad_input(tmp_path, damage):
    path = tmp_path / "model"
    policy().save(path)
    (path / damage).unlink()
    with pytest.raises(InputError, match="not the folder of an embedding model") as caught:
        embedder(path)
    assert "tokenizer.json" in caught.value.how
