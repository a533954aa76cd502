"""The offline stage of ADS (2606.22305): group prompts by what the policy sees in them, rank them by difficulty.

Embedding: mean of the last hidden states over question and reference solution. Difficulty: mean negative
log-likelihood (nats per token) of the reference solution given the question, under the same policy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import normalize
from torch import Tensor

from components.device import autocast
from components.policy import Policy
from components.policy.logprobs import hidden_and_logprobs, response_logprobs
from components.policy.padding import Padded, pad
from components.types import Prompt
from components.working import working

Array = np.ndarray[Any, np.dtype[np.float64]]
Labels = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
SILHOUETTE_SAMPLE = 5000
TOKENS, LOGITS = 1024, 2**23
"""Padded tokens that are computed together, and logits that are there at a time: enough for products of a good size."""
MANY = 20_000
"""Prompts from which on PCA goes by the covariance: as exact to 10 digits, in a tenth of the time, and in memory that
does not grow with them."""


@dataclass(frozen=True)
class Described:
    """``embeddings [N, H]`` and ``nll [N]`` of N prompts."""

    embeddings: Array
    nll: Array


class Merge(NamedTuple):
    """A cluster that was too small: its number in k-means, its size, and the number of the one that has its members."""

    cluster: int
    size: int
    into: int


class Clustering(NamedTuple):
    """``labels [N]`` numbered 0.. without gaps, their silhouette, and what was merged ``into`` which label."""

    labels: Labels
    silhouette: float
    merged: list[Merge]


@torch.no_grad()
def describe(policy: Policy, prompts: Sequence[Prompt], *, embed: bool = True) -> Described:
    """Embed and score some prompts. Inputs beyond the model's positions are cut at the end.

    Args:
        embed: Without it the embeddings are ``[N, 0]``, and hidden states are made only where a probability needs them.
    """
    limit = policy.max_positions or sys.maxsize
    questions = [policy.encode_prompt(p.text)[: limit - 1] for p in prompts]
    answers = [policy.encode_answer(p.solution)[: limit - len(q)] for p, q in zip(prompts, questions, strict=True)]
    lengths = [len(question) + len(answer) for question, answer in zip(questions, answers, strict=True)]
    nll, embeddings = np.empty(len(prompts)), [np.empty(0)] * len(prompts)
    for places in batches(lengths, TOKENS):
        batch = pad([questions[i] for i in places], [answers[i] for i in places], policy.pad_id)
        with autocast(policy.model):
            pooled, mean = _described(policy, batch.to(policy.model.device), embed)
        nll[places] = torch.nan_to_num(mean.double(), nan=np.inf, posinf=np.inf).cpu().numpy()
        for place, one in zip(places, pooled, strict=True):
            embeddings[place] = one
    return Described(np.stack(embeddings), nll)


def _described(policy: Policy, batch: Padded, embed: bool) -> tuple[Array, Tensor]:
    """Embeddings ``[B, H]`` and mean negative log-likelihoods ``[B]``, these where the model is."""
    ids, seen, wanted = batch
    if embed:
        hidden, logp = hidden_and_logprobs(policy.model, ids, seen, wanted, LOGITS)
        mask = seen[..., None].float()
        pooled = ((hidden.float() * mask).sum(1) / mask.sum(1)).double().cpu().numpy()
    else:
        width = wanted.shape[1]
        logp = response_logprobs(policy.model, ids, seen, width, 1.0, mask=wanted, logits_at_once=LOGITS).logp
        pooled = np.empty((len(ids), 0))
    return pooled, -logp.sum(1) / wanted.sum(1)


def batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Places of what is computed together: like lengths, at most ``tokens`` of them padded, one at least."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        if batch and (len(batch) + 1) * lengths[place] > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def cluster(embeddings: Array, k: int, components: int, min_size: int, seed: int) -> Clustering:
    """L2-normalise, PCA, k-means; clusters below ``min_size`` join their nearest neighbour, smallest first."""
    points = normalize(embeddings)
    dimensions = min(components, points.shape[1], len(points))
    solver = "full" if len(points) < MANY else "covariance_eigh"
    with working(f"clustering {len(points):,} prompts"):
        points = PCA(dimensions, svd_solver=solver).fit_transform(points)
        model = KMeans(min(k, len(points)), n_init=4, random_state=seed % 2**32).fit(points)
    kept, merged = merge_small(model.labels_, model.cluster_centers_, min_size)
    numbers, labels = np.unique(kept, return_inverse=True)
    renumbered = {int(old): new for new, old in enumerate(numbers)}
    ends = {old: renumbered[int(kept[model.labels_ == old][0])] for old in np.unique(model.labels_).tolist()}
    sample = min(SILHOUETTE_SAMPLE, len(points))
    several = 1 < len(numbers) < len(points)
    score = silhouette_score(points, labels, sample_size=sample, random_state=0) if several else 0.0
    return Clustering(labels, float(score), [merge._replace(into=ends[merge.into]) for merge in merged])


def merge_small(labels: Labels, centres: Array, min_size: int) -> tuple[Labels, list[Merge]]:
    """Give the members of every cluster below ``min_size`` to the cluster with the nearest centre."""
    labels, merged = labels.copy(), list[Merge]()
    while True:
        sizes = {int(k): int((labels == k).sum()) for k in np.unique(labels)}
        small = [k for k, size in sizes.items() if size < min_size]
        if not small or len(sizes) == 1:
            return labels, merged
        victim = min(small, key=lambda k: (sizes[k], k))
        others = [k for k in sizes if k != victim]
        nearest = min(others, key=lambda k: (float(np.linalg.norm(centres[k] - centres[victim])), k))
        labels[labels == victim] = nearest
        merged.append(Merge(victim, sizes[victim], nearest))


def rank(labels: Labels, nll: Array) -> list[int]:
    """Position of every prompt in its cluster, easiest (lowest NLL) first; ties keep the input order."""
    ranks = np.empty(len(labels), int)
    for k in np.unique(labels):
        members = np.flatnonzero(labels == k)
        ranks[members[np.argsort(nll[members], kind="stable")]] = np.arange(len(members))
    return list(ranks.tolist())
