"""The list of mutations fits the code: each applies to it, and its package has tests."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.benchmarks.mutations.__main__ import files_of, mutated, package_of
from tests.benchmarks.mutations.table import MUTATIONS, TESTS, Mutation
from tests.code_graph import ROOT


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[f"{one.file}: {one.new}" for one in MUTATIONS])
def test_a_mutation_applies_and_is_other_code(mutation: Mutation) -> None:
    text = (ROOT / "components" / mutation.file).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(mutated(text, mutation))) != ast.dump(ast.parse(text))


def test_there_are_at_least_sixty_over_six_packages_that_have_tests() -> None:
    counts = Counter(map(package_of, MUTATIONS))
    assert sum(counts.values()) >= 60 and min(counts.values()) >= 7 and counts.keys() == TESTS.keys()
    assert all(files_of(ROOT, package) for package in TESTS)


def test_one_that_no_longer_fits_the_code_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 times, not once"):
        mutated("a a", Mutation("objectives/x.py", "a", "b"))
