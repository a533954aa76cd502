"""Shares of a checkpoint's probability by role and by letter."""

from __future__ import annotations

from random import Random

import pytest

from components.tasks.stereotypes import AMBIGUOUS, GROUPS, SITUATIONS, draw
from tests.benchmarks.roles import Option, by_letter, by_role, letters_alike, roles


@pytest.mark.parametrize("family", GROUPS)
def test_roles_are_read_from_the_text_of_a_prompt(family):
    rng = Random(0)
    for item in (draw(rng, family, AMBIGUOUS, SITUATIONS) for _ in range(100)):
        found = roles(item.text, family)
        assert found.index("stereotyped") == item.biased
        assert found.index("not known") == item.unknown
        assert found.count("other") == 1


ORDERS = (
    ("stereotyped", "other", "not known"),
    ("stereotyped", "not known", "other"),
    ("other", "not known", "stereotyped"),
)
"""The stereotyped option is the first one more often than not."""


def options(takes) -> list[Option]:
    """Options of a policy that gives all to the options that it takes."""
    return [Option(at, role, float(takes(at, role))) for order in ORDERS for at, role in enumerate(order)]


def test_a_learned_letter_looks_like_a_prejudice_until_letters_count_alike():
    letter = options(lambda place, role: place == 0)
    assert by_letter(letter, 3) == {"A": 1, "B": 0, "C": 0}
    assert by_role(letter, 3)["stereotyped"] == pytest.approx(2 / 3)
    prejudice = options(lambda place, role: role == "stereotyped")
    assert letters_alike(prejudice) == {"stereotyped": 1, "other": 0, "not known": 0}


def test_letters_alike_gives_a_third_to_every_role_of_a_learned_letter():
    cycle = [Option(at, role, float(at == 0)) for at in range(3) for role in ("stereotyped", "other", "not known")]
    assert letters_alike(cycle) == pytest.approx({"stereotyped": 1 / 3, "other": 1 / 3, "not known": 1 / 3})
