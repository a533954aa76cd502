"""The task that is learned: products of 2 to 12. The smoke has a tiny model with random weights."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from tests.benchmarks.accuracy.task import Task
from tests.benchmarks.section import Scale
from tests.code_graph import ROOT

_PRODUCTS = Task(
    config=ROOT / "tests" / "benchmarks" / "real" / "products.yaml",
    stages=("data", "sft", "admission", "triage", "clusters"),
    changes=(),
    same=(),
    own=(
        "rollout.engine.precision=bfloat16",
        "learner.compute_dtype=bfloat16",
        "learner.updates_per_step=2",
        "objective.correction={kind: tis_token, cap: 2.0}",
    ),
    steps=6,
    prompts=8,
    held_out=64,
    every=1,
    clock=time.process_time,
)
_TINY = (
    "policy.model={kind: tiny, hidden_size: 32, layers: 1, heads: 2, kv_heads: 1, intermediate_size: 64}",
    "data.splits={sft: 0.2, train: 0.4, dev: 0.1, test: 0.3}",
    "sft={steps: 2, batch_size: 4}",
    "rollout.max_new_tokens=4",
)
PRODUCTS: Mapping[Scale, Task] = {
    "full": _PRODUCTS,
    "smoke": replace(_PRODUCTS, changes=_TINY, steps=2, prompts=2, held_out=4),
}
