"""How far sampler and learner may be apart: by their number formats, and by the first steps of the run."""

import pytest
import torch

from components.config import Settings
from components.training.evidence import FIRST, UsualGap, explained
from tests.unit.factories import settings


def engine(**values: object) -> Settings:
    return settings(rollout={"engine": values})


CPU, GPU = torch.device("cpu"), torch.device("cuda")
VLLM = {"kind": "vllm", "urls": ("http://rollout:8000",)}


@pytest.mark.parametrize(
    ("made", "device", "limit"),
    [
        (engine(), CPU, 1e-3),
        (engine(), GPU, 1e-2),
        (engine(precision="policy"), GPU, 1e-2),
        (settings(rollout={"engine": {"precision": "policy"}}, learner={"compute_dtype": "float32"}), GPU, 1e-3),
        (settings(policy={"dtype": "bfloat16"}), CPU, 1e-2),
        (engine(precision="bfloat16"), CPU, 1e-2),
        (engine(precision="int8"), CPU, 0.15),
        (engine(precision="int4"), CPU, 0.7),
        (engine(**VLLM), CPU, 1e-3),
        (engine(**VLLM, dtype="float16"), CPU, 1e-3),
        (engine(**VLLM, dtype="bfloat16"), CPU, 1e-2),
        (engine(**VLLM, kv_cache_dtype="fp8_e4m3"), CPU, 0.15),
        (engine(kind="sglang", urls=("http://rollout:30000",), dtype="bfloat16"), CPU, 1e-2),
    ],
)
def test_the_coarsest_format_of_sampler_and_learner_sets_the_limit(
    made: Settings, device: torch.device, limit: float
) -> None:
    assert explained(made, device) == limit


def test_a_gap_is_compared_with_the_first_steps_once_they_are_over() -> None:
    gap = UsualGap(1e-2)
    for _ in range(FIRST):
        assert gap.observe({"mismatch_k3": 1e-3}) == {"mismatch_explained": 1e-2}
    assert gap.observe({"mismatch_k3": 4e-2}) == {"mismatch_explained": 1e-2, "mismatch_times": pytest.approx(2.0)}
    assert gap.observe({}) == {}
