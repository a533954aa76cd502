"""A checkpoint into a bucket and out of it over a link of 1 Gbit/s, compared with plain boto3.

The server is then no faster than a network between two machines, and leaves the processor to its client:
``pytest -s tests/benchmarks/test_bucket_link.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.growth.bucket import measure

GIGABIT = 1e9 / 8
PAIRS = {"put": "upload", "pull": "download"}
"""Ours, and boto3's."""


@pytest.mark.parametrize("digested", [True, False])
@pytest.mark.parametrize("size", [10, 100, 1000])
def test_a_checkpoint_over_a_link(size: int, digested: bool, tmp_path: Path) -> None:
    row = measure(size, tmp_path, rate=GIGABIT, digested=digested)
    print("\ndigested before" if digested else "\nnot digested before")
    for ours, plain in PAIRS.items():
        took, other = row[f"{ours}_s"], row[f"{plain}_s"]
        print(f"{size:5} MB  {ours} {took:.2f} s  boto3's {plain} {other:.2f} s  ratio {took / other:.2f}")
        assert took > size * 1e6 / GIGABIT / 2, "the link carried more than it can"
