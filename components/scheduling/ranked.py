"""Reading back what the clusters stage wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from components.files import read_jsonl
from components.layout import Layout
from components.scheduling import Clusters
from components.types import Prompt


def ranked_clusters(prompts: Sequence[Prompt], layout: Layout) -> Clusters:
    """The clusters as the schedule wants them: number -> prompts, easiest first."""
    by_id = {prompt.id: prompt for prompt in prompts}
    rows = sorted(read_jsonl(layout.clusters), key=lambda row: (row["cluster"], row["rank"]))
    clusters: dict[int, list[Prompt]] = {}
    for row in rows:
        clusters.setdefault(row["cluster"], []).append(replace(by_id[row["id"]], cluster=row["cluster"]))
    return clusters
