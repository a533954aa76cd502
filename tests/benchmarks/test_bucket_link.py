"""A checkpoint into a bucket and out of it, compared with plain boto3.

Over a link of 1 Gbit/s the server is no faster than a network between two machines, and leaves the processor to its
client. Without the link both share the processor.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.growth.bucket import measure

GIGABIT = 1e9 / 8
CASES = {
    "over a link, digested before": (GIGABIT, True),
    "over a link": (GIGABIT, False),
    "on the same processor, digested before": (0.0, True),
}
"""Bytes a second that are carried, or 0; whether a put is given the manifest."""
PAIRS = {"put": "upload", "pull": "download"}
"""Ours, and boto3's."""


@pytest.mark.parametrize("size", [10, 100, 1000])
@pytest.mark.parametrize("case", list(CASES))
def test_a_checkpoint_and_a_bucket(case: str, size: int, tmp_path: Path) -> None:
    rate, digested = CASES[case]
    row = measure(size, tmp_path, rate, digested=digested)
    for ours, plain in PAIRS.items():
        took, other = row[f"{ours}_s"], row[f"{plain}_s"]
        print(f"{case}: {size} MB  {ours} {took:.2f} s  boto3's {plain} {other:.2f} s  ratio {took / other:.2f}")
        assert not rate or took > size * 1e6 / rate / 2, "the link carried more than it can"
