"""Stage `clusters`: embed, cluster and rank the training prompts under the SFT checkpoint, for schedules that read it.

Where nothing reads clusters, all prompts are one, and no model is loaded.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from components.config import Settings
from components.config.scheduling import AdsSchedule, ModelEmbedding
from components.data.prompts import nested, read_admitted
from components.files import read_json, write_json, write_jsonl
from components.layout import Layout
from components.progress import progress
from components.proportion import ranked_prompts
from components.seeds import derive
from components.types import Prompt
from components.working import working

if TYPE_CHECKING:
    from components.clusters.clustering import Array, Merge
    from components.clusters.embedding import SentenceEmbedder
    from components.policy import Policy

BATCH = 8
"""Prompts between two signs of life."""


def run(settings: Settings, layout: Layout) -> None:
    """Write `out/clusters.jsonl` (one row a prompt that the schedule may draw) and its summary."""
    prompts = read_admitted(layout.split("train"), layout.admission_flags)
    count = ranked_prompts(settings)
    if count is None:
        rows = [{"id": prompt.id, "cluster": 0, "rank": place} for place, prompt in enumerate(prompts)]
        write_jsonl(layout.clusters, rows)
        write_json(layout.clusters_metrics, {**summary(prompts, rows), "read": False})
        return
    success = read_json(layout.triage, how="run the triage stage first")["success"]
    rank_prompts(nested(prompts, count, derive(settings.seed, "base")), success, settings, layout)


def rank_prompts(prompts: Sequence[Prompt], success: dict[str, float], settings: Settings, layout: Layout) -> None:
    """Clusters of the prompts, each from easy to hard, and whether that agrees with their measured ``success``."""
    with working("loading the code"):  # and torch, which this stage does without where nothing reads clusters
        import numpy as np

        from components.clusters.clustering import cluster, rank
        from components.clusters.difficulty import difficulty_report
        from components.clusters.embedding import SentenceEmbedder
        from components.policy import load_policy

    policy = load_policy(layout.sft_checkpoint, settings.policy)
    chosen = settings.clusters
    other = SentenceEmbedder(chosen.embedding) if isinstance(chosen.embedding, ModelEmbedding) else None
    embeddings, nll = describe_all(policy, prompts, other)
    nll = np.where(np.isfinite(nll), nll, nll[np.isfinite(nll)].max(initial=0.0) + 1)
    window = cast(AdsSchedule, settings.schedule).window
    found = cluster(embeddings, chosen.k, chosen.components, window, derive(settings.seed, "base"))
    rows = [
        {"id": p.id, "cluster": int(k), "rank": r, "nll": round(float(n), 6)}
        for p, k, r, n in zip(prompts, found.labels, rank(found.labels, nll), nll, strict=True)
    ]
    difficulty = difficulty_report(rows, success)
    write_jsonl(layout.clusters, rows)
    write_json(
        layout.clusters_metrics,
        {
            **summary(prompts, rows),
            "read": True,
            "silhouette": round(found.silhouette, 6),
            "merged": [merge._asdict() for merge in found.merged],
            "difficulty": difficulty,
        },
    )
    for text in [*map(say_merge, found.merged), *filter(None, [difficulty["warning"]])]:
        print(f"WARNING: {text}", file=sys.stderr)


def say_merge(merge: Merge) -> str:
    """What was done with a cluster that was too small for a window."""
    return (
        f"cluster {merge.cluster} of k-means has {merge.size} prompts, fewer than schedule.window, "
        f"and was merged into cluster {merge.into}"
    )


def describe_all(policy: Policy, prompts: Sequence[Prompt], other: SentenceEmbedder | None) -> tuple[Array, Array]:
    """Embeddings ``[N, H]``, by the ``other`` model where there is one, and difficulties ``[N]`` under the policy.

    Prompts of like length share a batch, to save padding.
    """
    import numpy as np

    from components.clusters.clustering import describe

    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i].text) + len(prompts[i].solution))
    embeddings, nll = np.empty((0, 0)), np.empty(len(prompts))
    with progress("clusters", len(prompts)) as bar, working("describing", len(prompts), "prompts") as work:
        for start in range(0, len(prompts), BATCH):
            batch = [prompts[i] for i in by_length[start : start + BATCH]]
            described = describe(policy, batch, embed=other is None)
            if other is not None:
                described = replace(described, embeddings=other.embed([f"{p.text}\n{p.solution}" for p in batch]))
            places = by_length[start : start + BATCH]
            if not start:  # the width is known now; gathered in parts, they would take their memory three times over
                embeddings = np.empty((len(prompts), described.embeddings.shape[1]))
            embeddings[places], nll[places] = described.embeddings, described.nll
            work.add(len(batch))
            bar.advance(work.done)
    return embeddings, nll


def summary(prompts: Sequence[Prompt], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Size and families of every cluster, and its difficulty where that was measured."""
    clusters = []
    for k in sorted({row["cluster"] for row in rows}):
        members = [(p, row) for p, row in zip(prompts, rows, strict=True) if row["cluster"] == k]
        nll = [row["nll"] for _, row in members if "nll" in row]
        clusters.append(
            {
                "cluster": k,
                "size": len(members),
                **({"nll_mean": round(sum(nll) / len(nll), 6)} if nll else {}),
                "families": dict(sorted(Counter(p.family for p, _ in members).items())),
            }
        )
    return {"k": len(clusters), "clusters": clusters}
