"""The clusters stage in its parts: the forward pass over the prompts, and what is made of the embeddings."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.benchmarks.growth.curve import Cost, Curve
from tests.benchmarks.growth.measures import cpu_s, least_ms, peak
from tests.benchmarks.section import Row

DIMENSION = 384
"""Of the embeddings: that of the smaller sentence-embedding models."""
K, COMPONENTS, WINDOW = 8, 32, 8


def forward(size: int, folder: Path) -> Row:
    """Embeddings and difficulties of word problems under the demo's model, in the stage's batches."""
    import torch

    from components.config import load
    from components.stages.clusters import describe_all
    from components.tasks import TASKS
    from tests.benchmarks.growth.policies import demo_policy
    from tests.code_graph import ROOT

    torch.set_num_threads(1)
    settings = load(ROOT / "configs/demo.yaml")
    prompts = TASKS["arithmetic"](settings.data.source.model_copy(update={"rows": size}), 0)  # type: ignore[arg-type]
    policy = demo_policy(settings, prompts)
    describe_all(policy, prompts[:8], None)
    with peak() as memory:
        seconds = cpu_s(lambda: describe_all(policy, prompts, None))
    return {"forward_s": seconds, "forward_mb": memory.mb}


def group(size: int, folder: Path) -> Row:
    """k-means with the settings' own figures over embeddings of a mixture, and ranks inside the clusters."""
    from components.clusters.clustering import cluster, rank

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(K, DIMENSION))
    embeddings = np.empty((size, DIMENSION))
    for start in range(0, size, 2**14):
        part = embeddings[start : start + 2**14]
        part[:] = centres[rng.integers(K, size=len(part))] + rng.normal(size=part.shape)
    nll = rng.random(size)
    found = []
    with peak() as memory:
        seconds = cpu_s(lambda: found.append(cluster(embeddings, K, COMPONENTS, WINDOW, 0)))
    ranked = 1e-3 * least_ms(lambda: rank(found[0].labels, nll), repeats=3)
    nll.sort()
    in_order = 1e-3 * least_ms(lambda: rank(found[0].labels, nll), repeats=3)
    return {"cluster_s": seconds, "rank_s": ranked, "in_order_s": in_order, "cluster_mb": memory.mb}


RANK = (
    "prompts are sorted, n log n, and their positions written in that order, which is scattered over all of them; "
    "of prompts that are in order already (the next line of the table above) the same call writes them in a row"
)


FORWARD = Curve(
    "prompts", "embedding, the demo's model", (100, 1000, 10**4), 16, forward,
    (Cost("forward_s", "forward pass"), Cost("forward_mb", "peak memory")),
)  # fmt: skip
GROUP = Curve(
    "prompts", f"clusters of {DIMENSION} dimensions", (10**3, 10**4, 10**5, 10**6), 500, group,
    (
        Cost("cluster_s", "PCA, k-means, silhouette", floor=1.0),
        Cost("rank_s", "ranks in the clusters", RANK, floor=1e-3),
        Cost("in_order_s", "the same, of prompts that are in order already", floor=1e-3),
        Cost("cluster_mb", "peak memory beyond the embeddings"),
    ),
)  # fmt: skip
