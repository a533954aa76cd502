"""Weights of 4 bits: groups of 64 inputs with a scale and an offset each, and a copy that is an ordinary policy."""

from __future__ import annotations

import pytest
import torch
from factories import policy
from hypothesis import given, settings
from hypothesis import strategies as st

from components.config.rollout import TorchEngine as TorchEngineSettings
from components.policy.quantised import GROUP, in_int4, rounded, rounded_weights
from components.rollout.torch_engine import TorchEngine

PROJECTION = "model.layers.0.mlp.up_proj.weight"


def test_sixteen_levels_from_the_least_weight_of_a_group_to_the_largest():
    assert rounded(torch.tensor([[-3.0, 12.0, 0.4, 0.6, -2.6]])).tolist() == [[-3.0, 12.0, 0.0, 1.0, -3.0]]


@pytest.mark.parametrize("value", [0.0, 0.7, -2.0])
def test_a_group_of_one_value_stays_as_it_is(value):
    weight = torch.full((2, GROUP), value)
    assert torch.equal(rounded(weight), weight)


@settings(deadline=None)
@given(inputs=st.integers(1, 3 * GROUP), factor=st.sampled_from([1e-4, 1.0, 1e4]))
def test_a_weight_is_off_by_half_a_step_of_its_group_at_the_most(inputs, factor):
    weight = factor * torch.randn(3, inputs, generator=torch.Generator().manual_seed(inputs))
    found = rounded(weight)
    assert found.shape == weight.shape
    for old, new in zip(weight.split(GROUP, 1), found.split(GROUP, 1), strict=True):
        low, high = old.aminmax(dim=1, keepdim=True)
        assert ((new - old).abs() <= 0.5001 * (high - low) / 15 + 1e-6 * factor).all()


def test_a_large_weight_coarsens_its_own_group_alone():
    weight = torch.rand(1, 2 * GROUP)
    large = weight.clone()
    large[0, 0] = 1000
    before, after = rounded(weight), rounded(large)
    assert torch.equal(before[:, GROUP:], after[:, GROUP:])
    assert not torch.equal(before[:, 1:GROUP], after[:, 1:GROUP])


def test_weights_on_the_grid_of_their_groups_are_given_back():
    once = rounded(torch.randn(8, 2 * GROUP))
    assert torch.allclose(rounded(once), once, atol=1e-6)


def test_a_weight_keeps_its_precision():
    assert rounded(torch.ones(2, 3, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_linear_layers_are_rounded_and_embeddings_norms_and_the_head_are_not():
    own = policy().weights()
    found = in_int4(policy()).weights()
    changed = {name for name in own if not torch.equal(own[name], found[name])}
    assert changed == {name for name in own if name.endswith("_proj.weight")}
    assert torch.equal(found[PROJECTION], rounded(own[PROJECTION]))


def test_a_name_that_the_policy_has_not_passes_to_the_check_of_names():
    foreign = {"foreign": torch.zeros(1)}
    assert rounded_weights(policy(), foreign) == foreign


def test_an_engine_computes_int4_with_the_lean_pass_of_dense_models():
    assert TorchEngine(policy(), TorchEngineSettings(precision="int4"))._dense is not None
