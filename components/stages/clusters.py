"""Stage `clusters`: embed, cluster and rank the training prompts under the SFT checkpoint."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from components.config import Settings
from components.config.scheduling import AdsSchedule, ModelEmbedding
from components.data.prompts import read_admitted
from components.files import read_json, read_jsonl, write_json, write_jsonl
from components.layout import Layout
from components.policy import Policy, load_policy
from components.progress import progress
from components.scheduling import Clusters
from components.scheduling.clustering import Array, Merge, cluster, describe, rank
from components.scheduling.difficulty import difficulty_report
from components.scheduling.embedding import SentenceEmbedder
from components.seeds import derive
from components.types import Prompt

BATCH = 64


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/clusters.jsonl` (one row a training prompt) and its summary."""
    policy = load_policy(layout.sft_checkpoint, settings.policy)
    prompts = read_admitted(layout.split("train"), layout.admission_flags)
    success = read_json(layout.triage, how="run the triage stage first")["success"]
    embedding = settings.clusters.embedding
    other = SentenceEmbedder(embedding) if isinstance(embedding, ModelEmbedding) else None
    embeddings, nll = describe_all(policy, prompts, other)
    nll = np.where(np.isfinite(nll), nll, nll[np.isfinite(nll)].max(initial=0.0) + 1)
    walks = isinstance(settings.schedule, AdsSchedule)
    window = settings.schedule.window if isinstance(settings.schedule, AdsSchedule) else 1
    seed = derive(settings.seed, "clusters")
    found = cluster(embeddings, settings.clusters.k, settings.clusters.components, window, seed)
    rows = [
        {"id": p.id, "cluster": int(k), "rank": r, "nll": round(float(n), 6)}
        for p, k, r, n in zip(prompts, found.labels, rank(found.labels, nll), nll, strict=True)
    ]
    difficulty = difficulty_report(rows, success)
    write_jsonl(layout.clusters, rows)
    write_json(
        layout.clusters_metrics,
        {
            **summary(prompts, rows, found.silhouette),
            "merged": [merge._asdict() for merge in found.merged],
            "difficulty": difficulty,
        },
    )
    for text in [*map(say_merge, found.merged), *([difficulty["warning"]] if walks and difficulty["warning"] else [])]:
        print(f"WARNING: {text}", file=sys.stderr)


def say_merge(merge: Merge) -> str:
    """What became of a cluster that was too small for a window."""
    return (
        f"cluster {merge.cluster} of k-means has {merge.size} prompts, fewer than schedule.window, "
        f"and was merged into cluster {merge.into}"
    )


def describe_all(policy: Policy, prompts: Sequence[Prompt], other: SentenceEmbedder | None) -> tuple[Array, Array]:
    """Embeddings ``[N, H]``, by the ``other`` model where there is one, and difficulties ``[N]`` under the policy.

    Prompts of like length share a batch, to save padding.
    """
    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i].text) + len(prompts[i].solution))
    embeddings, nll = np.empty((0, 0)), np.empty(len(prompts))
    with progress("clusters", len(prompts)) as bar:
        for start in range(0, len(prompts), BATCH):
            batch = [prompts[i] for i in by_length[start : start + BATCH]]
            described = describe(policy, batch)
            if other is not None:
                described = replace(described, embeddings=other.embed([f"{p.text}\n{p.solution}" for p in batch]))
            places = by_length[start : start + BATCH]
            if not start:  # the width is known now; gathered in parts, they would take their memory three times over
                embeddings = np.empty((len(prompts), described.embeddings.shape[1]))
            embeddings[places], nll[places] = described.embeddings, described.nll
            bar.advance(min(start + BATCH, len(prompts)))
    return embeddings, nll


def summary(prompts: Sequence[Prompt], rows: Sequence[dict[str, Any]], silhouette: float) -> dict[str, Any]:
    """Size, difficulty and families of every cluster."""
    clusters = []
    for k in sorted({row["cluster"] for row in rows}):
        members = [(p, row) for p, row in zip(prompts, rows, strict=True) if row["cluster"] == k]
        clusters.append(
            {
                "cluster": k,
                "size": len(members),
                "nll_mean": round(sum(row["nll"] for _, row in members) / len(members), 6),
                "families": dict(sorted(Counter(p.family for p, _ in members).items())),
            }
        )
    return {"k": len(clusters), "silhouette": round(silhouette, 6), "clusters": clusters}


def ranked_clusters(prompts: Sequence[Prompt], layout: Layout) -> Clusters:
    """The clusters as the schedule wants them: number -> prompts, easiest first."""
    by_id = {prompt.id: prompt for prompt in prompts}
    rows = sorted(read_jsonl(layout.clusters), key=lambda row: (row["cluster"], row["rank"]))
    clusters: dict[int, list[Prompt]] = {}
    for row in rows:
        clusters.setdefault(row["cluster"], []).append(replace(by_id[row["id"]], cluster=row["cluster"]))
    return clusters
