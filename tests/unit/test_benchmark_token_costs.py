"""What a token costs: measured on a model, and solved for the rates of the estimate."""

from __future__ import annotations

import pytest

from components.config import Settings
from flows.budget.costs import PASSES, RATES, Shape, seconds
from tests.benchmarks.token_costs import of_a_token, solved

SMALL = {"kind": "tiny", "hidden_size": 32, "layers": 1}


def test_sampling_scoring_and_learning_are_measured():
    costs = of_a_token(Settings.model_validate({"policy": {"model": SMALL}}))
    assert costs.keys() == PASSES.keys()
    assert costs["scoring"] > 0 and costs["learning"] > 0


@pytest.mark.parametrize("kind", PASSES)
def test_the_costs_of_two_models_give_the_rates_back(kind):
    shapes = [Shape(6e5, 400.0), Shape(1.3e8, 17_000.0)]
    found = solved(shapes, [seconds(kind, shape, 1) for shape in shapes], PASSES[kind])
    assert found == pytest.approx(RATES[kind])
