"""A question's split depends on its content alone."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.config.data import SplitSettings
from components.data.splits import assign, position

SHARES = SplitSettings()
KNOWN = ["sft", "train", "train", "test", "sft", "train", "sft", "sft", "sft", "sft", "sft", "sft"]


def test_shares_are_met():
    counts = Counter(assign(f"question {i}", SHARES) for i in range(20_000))
    for split, share in SHARES.model_dump().items():
        assert counts[split] / 20_000 == pytest.approx(share, abs=0.01)


def test_known_questions_stay_where_they_are():
    """A change here moves every data set's rows between training and test."""
    assert [assign(f"{a}+{a}=", SHARES) for a in range(12)] == KNOWN


@given(st.text())
def test_duplicates_share_their_split(text):
    assert assign(f"  {text}\n", SHARES) == assign(text, SHARES)
    assert 0 <= position(text) < 1


def test_a_split_without_a_share_gets_nothing():
    shares = SplitSettings(sft=0, train=0.5, dev=0.25, test=0.25)
    assert {assign(str(i), shares) for i in range(1000)} == {"train", "dev", "test"}
