"""The offline stage of ADS: embeddings, clusters, difficulty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from factories import TINY, policy, prompts

from components.clusters.clustering import Merge, cluster, describe, merge_small, rank
from components.policy import Policy


@pytest.fixture(scope="module")
def micro() -> Policy:
    return policy()


def blobs(*sizes: int) -> np.ndarray:
    """Points near distinct axes."""
    rng = np.random.default_rng(0)
    return np.concatenate([np.eye(8)[k] + 0.01 * rng.standard_normal((size, 8)) for k, size in enumerate(sizes)])


# Embedding and difficulty


def test_difficulty_is_the_mean_negative_log_likelihood_of_the_solution_end_token_included(micro):
    one = prompts(3)[2]
    question, answer = micro.encode_prompt(one.text), micro.encode_answer(one.solution)
    with torch.no_grad():
        logits = micro.model(torch.tensor([question + answer])).logits[0, len(question) - 1 : -1]
    nll = torch.nn.functional.cross_entropy(logits, torch.tensor(answer)).item()
    assert describe(micro, [one]).nll[0] == pytest.approx(nll, abs=1e-5)


def test_embedding_is_the_mean_of_the_last_hidden_states(micro):
    one = prompts(3)[2]
    ids = micro.encode_prompt(one.text) + micro.encode_answer(one.solution)
    with torch.no_grad():
        hidden = micro.model.base_model(torch.tensor([ids])).last_hidden_state[0].mean(0)
    assert describe(micro, [one]).embeddings[0] == pytest.approx(hidden.numpy(), abs=1e-5)


def test_neighbours_and_padding_do_not_change_a_prompt(micro):
    many = prompts(6)
    together, alone = describe(micro, many), [describe(micro, [p]) for p in many]
    assert together.nll == pytest.approx(np.concatenate([d.nll for d in alone]), abs=1e-5)
    assert together.embeddings == pytest.approx(np.concatenate([d.embeddings for d in alone]), abs=1e-5)


@pytest.mark.parametrize("change", [{"solution": "1+1=" * 100}, {"text": "1+1=" * 100}])
def test_what_is_longer_than_the_model_reads_is_cut(micro, change):
    described = describe(micro, [replace(prompts(1)[0], **change)])
    assert described.embeddings.shape == (1, TINY.hidden_size)
    assert np.isfinite(described.nll).all()


def test_a_solution_that_the_policy_cannot_score_is_infinitely_hard():
    broken = policy()
    with torch.no_grad():
        broken.model.get_output_embeddings().weight.fill_(float("nan"))
    assert describe(broken, prompts(2)).nll.tolist() == [float("inf")] * 2


# Clusters


def test_separate_groups_become_clusters_numbered_without_gaps():
    labels, silhouette, merged = cluster(blobs(6, 6, 6), k=3, components=4, min_size=1, seed=0)
    assert [len(set(labels[i : i + 6])) for i in (0, 6, 12)] == [1, 1, 1]
    assert sorted(set(labels.tolist())) == [0, 1, 2]
    assert silhouette > 0.9
    assert merged == []


@pytest.mark.parametrize("seed", [0, 4])  # the small one is the last, or the first
def test_clusters_below_the_minimum_join_another_and_leave_no_gap(seed):
    labels, _, merged = cluster(blobs(9, 9, 2), k=3, components=4, min_size=3, seed=seed)
    sizes = np.bincount(labels)
    assert (len(sizes), sizes.sum(), sizes.min() >= 3) == (2, 20, True)
    ((_, size, into),) = merged
    assert (size, labels[-1]) == (2, into)


def test_the_same_seed_gives_the_same_clusters():
    points = np.random.default_rng(1).standard_normal((40, 8))
    first, again = (cluster(points, k=5, components=4, min_size=2, seed=7) for _ in range(2))
    assert first[0].tolist() == again[0].tolist()
    assert first[1] == again[1]


def test_many_prompts_are_clustered_as_few_are(monkeypatch):
    """From `MANY` on PCA goes by the covariance."""
    points = np.random.default_rng(1).standard_normal((200, 8)) + 3 * np.repeat(np.eye(8)[:5], 40, axis=0)
    few = cluster(points, k=5, components=4, min_size=2, seed=7)
    monkeypatch.setattr("components.clusters.clustering.MANY", 200)
    many = cluster(points, k=5, components=4, min_size=2, seed=7)
    assert many.labels.tolist() == few.labels.tolist()
    assert many.silhouette == pytest.approx(few.silhouette, abs=1e-9)


@pytest.mark.parametrize("count", [2, 5])
def test_fewer_prompts_than_clusters_are_no_error(count):
    labels, silhouette, _ = cluster(blobs(*[1] * count), k=8, components=32, min_size=1, seed=0)
    assert len(labels) == count
    assert -1 <= silhouette <= 1


def test_small_clusters_go_to_the_nearest_centre_smallest_first():
    labels = np.array([0, 0, 0, 1, 2, 2])
    centres = np.array([[0.0], [10.0], [9.0]])
    assert merge_small(labels, centres, 3)[0].tolist() == [0, 0, 0, 2, 2, 2]
    assert merge_small(labels, centres, 2)[0].tolist() == [0, 0, 0, 2, 2, 2]
    assert merge_small(labels, centres, 1)[0].tolist() == labels.tolist()
    assert len(set(merge_small(labels, centres, 100)[0].tolist())) == 1


def test_every_merge_is_recorded_with_the_size_that_the_cluster_had_by_then():
    labels = np.array([0, 0, 0, 1, 2, 2])
    merged = merge_small(labels, np.array([[0.0], [10.0], [9.0]]), 4)[1]
    assert merged == [Merge(1, 1, 2), Merge(0, 3, 2)]


def test_merging_leaves_the_given_labels_alone():
    labels = np.array([0, 0, 1])
    merge_small(labels, np.array([[0.0], [1.0]]), 2)
    assert labels.tolist() == [0, 0, 1]


# Ranks


def test_ranks_go_from_easy_to_hard_inside_each_cluster_and_ties_keep_the_input_order():
    labels, nll = np.array([0, 1, 0, 1, 0]), np.array([3.0, 5.0, 1.0, 5.0, 2.0])
    assert rank(labels, nll) == [2, 0, 0, 1, 1]
