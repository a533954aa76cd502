"""Seeds depend on the purpose alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from components.seeds import derive

PURPOSES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/")) | st.integers(), max_size=3
)


def test_a_seed_is_the_same_on_every_machine():
    assert derive(0, "rollout", 3) == 3013096543775522488


@given(st.integers(0, 2**31), PURPOSES)
def test_a_seed_has_63_bits_and_repeats(seed, purpose):
    assert 0 <= derive(seed, *purpose) == derive(seed, *purpose) < 2**63


def test_distinct_purposes_give_distinct_seeds():
    purposes = [(seed, name, step) for seed in range(10) for name in ("train", "dev") for step in range(50)]
    assert len({derive(*purpose) for purpose in purposes}) == len(purposes)
