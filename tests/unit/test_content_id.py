"""When two questions are the same question."""

from __future__ import annotations

import pytest

from components.content_id import content_id, normalise
from components.data.likeness import likeness


@pytest.mark.parametrize(
    ("one", "other"), [("What is 2⁵?", "What is 25?"), ("Solve x² = 9.", "Solve x2 = 9."), ("x₁ + 1", "x1 + 1")]
)
def test_raised_and_lowered_characters_make_another_question(one, other):
    assert content_id("t", one) != content_id("t", other)
    assert likeness(one).normalised != likeness(other).normalised
    assert likeness(one).template != likeness(other).template


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2¹⁰", "2^10"),
        ("x₁₂ ", "X_12"),
        ("ﬁve  apples", "Five apples"),
        ("４２", "42"),
        ("What\nis 2³?", "what is 2^3?"),
    ],
)
def test_ways_of_writing_one_question_are_the_same(one, other):
    assert normalise(one) == normalise(other)
