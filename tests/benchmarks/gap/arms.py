"""What is compared: samplers of several precisions with one learner in fp32, and corrections for the gap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

SAMPLERS = {
    "fp32": "{kind: torch, precision: policy}",
    "bf16": "{kind: torch, precision: bfloat16}",
    "int8": "{kind: torch, precision: int8}",
    "int4": "{kind: torch, precision: int4}",
    "vLLM, fp8 cache": "{kind: vllm, processes: 1, dtype: bfloat16, kv_cache_dtype: fp8_e4m3, "
    "check: {mean_gap: 2.0, max_gap: 40.0}}",
}
"""``rollout.engine`` by name."""
CORRECTIONS = {
    "none": "null",
    "TIS": "{kind: tis_token, cap: 2.0}",
    "IcePop": "{kind: icepop, low: 0.5, high: 5.0}",
    "mask": "{kind: mask_sequence_geometric, low: 0.99, high: 1.01}",
    "wide mask": "{kind: mask_sequence_geometric, low: 0.8, high: 1.25}",
}
"""``objective.correction`` by name."""


class Arm(NamedTuple):
    sampler: str
    correction: str

    @property
    def changes(self) -> tuple[str, str]:
        """Settings, as ``--set`` takes them."""
        return f"rollout.engine={SAMPLERS[self.sampler]}", f"objective.correction={CORRECTIONS[self.correction]}"


REFERENCE = Arm("fp32", "none")
_FIRST = (
    REFERENCE,
    Arm("int4", "none"),
    Arm("int4", "TIS"),
    Arm("int8", "none"),
    Arm("int8", "TIS"),
    Arm("int4", "IcePop"),
    Arm("int4", "mask"),
    Arm("bf16", "none"),
    Arm("int8", "IcePop"),
    Arm("int8", "mask"),
    Arm("int4", "wide mask"),
    Arm("bf16", "TIS"),
)
_ALL = tuple(Arm(sampler, correction) for sampler, correction in product(SAMPLERS, CORRECTIONS))
_SAME = tuple(arm for arm in _ALL if arm.sampler == REFERENCE.sampler and arm != REFERENCE)
"""At fp32 there is hardly a gap, and a correction next to nothing to do: these come last."""
ARMS = (*_FIRST, *(arm for arm in _ALL if arm not in _FIRST and arm not in _SAME), *_SAME)
"""The most telling first."""
MAIN = tuple(arm for arm in ARMS if arm not in _SAME)


def in_order(seeds: Sequence[int]) -> Iterator[tuple[Arm, int]]:
    """All runs: the first seed of every arm, then the other seeds; those of `_SAME` after all others."""
    yield from ((arm, seed) for seed in seeds for arm in MAIN)
    yield from ((arm, seed) for seed in seeds for arm in _SAME)
