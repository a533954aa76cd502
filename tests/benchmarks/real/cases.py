"""What is sampled and updated: batches of the real model, and toys that show that the section runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.benchmarks.accuracy.reached import ARMS
from tests.benchmarks.micro.cases import Case, Sampled, Updated
from tests.benchmarks.real.model import VOCABULARY
from tests.benchmarks.section import Scale

RUNS: Mapping[Scale, tuple[str, ...]] = {
    "full": ("prepare", *(f"{arm} {seed}" for seed in (1, 2, 3) for arm in ARMS)),
    "smoke": ("trl 1", "own 1"),
}
"""Cells of the time to an accuracy; section `accuracy` shows that the others run."""


def _in_both(*cases: Case) -> dict[str, Case]:
    """Every case in fp32 and in bf16, by name."""
    both = [replace(case, name=f"{case.name}, {how}", precision=how) for case in cases for how in ("fp32", "bf16")]
    return {case.name: case for case in both}


_few = Sampled("sampling 4 x 8 rows of 64", "real", 4, 8, 64, VOCABULARY, endless=True)
_many = replace(_few, name="sampling 8 x 8 rows of 24", prompts=8, limit=24)
SAMPLED: Mapping[Scale, Mapping[str, Sampled]] = {
    "full": _in_both(_few, _many),
    "smoke": {"sampling, bf16": Sampled("sampling, bf16", "toy", 2, 2, 4, 32, endless=True, precision="bf16")},
}
"""No row ends before the limit, so that both sides write as many tokens."""
REMEMBERED = f"{_few.name}, fp32"
"""The one whose memory is measured."""
_long = Updated("update of 2 x 8 rows of 128", "real", 2, 8, 128, vocabulary=VOCABULARY, memory=True)
_short = Updated("update of 8 x 8 rows of 60 + 24, fp32", "real", 8, 8, 84, prompt=60, vocabulary=VOCABULARY)
UPDATED: Mapping[Scale, Mapping[str, Updated]] = {
    "full": {**_in_both(_long), _short.name: _short},
    "smoke": {"update, bf16": Updated("update, bf16", "toy", 2, 2, 16, vocabulary=32, precision="bf16")},
}
"""Rows are ragged: 128 tokens with the prompt, and prompts of 60 with completions of 24, are the longest."""
