"""Corrections for the gap between sampler and trainer, against numbers worked by hand."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor
from toys import kinds, near

from components.config.corrections import Correction, OffPolicyMask
from components.objectives.corrections import CORRECTIONS, off_policy_mask
from components.objectives.corrections.sequence import geometric, product


def correction(kind: str, **settings: float) -> Correction:
    """Its settings; a mask has a window of one per cent unless another is given."""
    window = {"low": 0.99, "high": 1.01} if kind.startswith("mask") else {}
    return TypeAdapter(Correction).validate_python({"kind": kind, **window, **settings})


def weights(kind: str, gaps: Tensor, mask: Tensor | None = None, **settings: float) -> Tensor:
    """Weights ``[B, R]`` where log pi_old - log pi_rollout is ``gaps``."""
    chosen = correction(kind, **settings)
    mask = torch.ones_like(gaps, dtype=torch.bool) if mask is None else mask
    return CORRECTIONS[kind](gaps - 1.0, torch.full_like(gaps, -1.0), mask, chosen)


def ratios(*values: float) -> Tensor:
    return torch.tensor([values], dtype=torch.float64).log()


def test_every_choice_of_the_settings_is_registered_and_nothing_else():
    assert kinds(Correction) == CORRECTIONS.keys()


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("tis_token", {"cap": 2.0}, [1.0, 2.0, 0.25]),
        ("tis_token", {"cap": 1e9}, [1.0, 3.0, 0.25]),  # exact importance sampling
        ("icepop", {"low": 0.5, "high": 5.0}, [1.0, 3.0, 0.0]),
        ("icepop", {"low": 0.5, "high": 2.0}, [1.0, 0.0, 0.0]),
        ("tis_sequence_product", {"cap": 2.0}, [0.75, 0.75, 0.75]),
        ("tis_sequence_product", {"cap": 1.0}, [0.75, 0.75, 0.75]),
        ("tis_sequence_geometric", {"cap": 2.0}, [0.9086, 0.9086, 0.9086]),
        ("mask_sequence_product", {"low": 0.7, "high": 2.0}, [1.0, 1.0, 1.0]),
        ("mask_sequence_product", {"low": 0.8, "high": 2.0}, [0.0, 0.0, 0.0]),
        ("mask_sequence_geometric", {"low": 0.9, "high": 1.1}, [1.0, 1.0, 1.0]),
        ("mask_sequence_geometric", {"low": 0.99, "high": 1.01}, [0.0, 0.0, 0.0]),
    ],
)
def test_worked_weights_of_three_tokens(kind, settings, expected):
    assert weights(kind, ratios(1.0, 3.0, 0.25), **settings)[0].tolist() == near(expected, 1e-4)


@pytest.mark.parametrize("kind", ["tis_sequence_product", "tis_sequence_geometric"])
def test_the_weight_of_a_sequence_is_truncated_too(kind):
    assert weights(kind, ratios(3.0, 3.0), cap=2.0)[0].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(("ratio", "weight"), [(0.499, 0.0), (0.501, 0.501), (4.999, 4.999), (5.001, 0.0)])
def test_icepop_drops_what_is_outside_its_window_and_weighs_what_is_inside(ratio, weight):
    assert weights("icepop", ratios(ratio), low=0.5, high=5.0).item() == near(weight, 1e-6)


@pytest.mark.parametrize("kind", ["mask_sequence_product", "mask_sequence_geometric"])
@pytest.mark.parametrize(("ratio", "kept"), [(9e-5, 0.0), (2e-4, 1.0)])
def test_one_impossible_token_has_a_veto_over_its_sequence_and_no_other(kind, ratio, kept):
    gaps = torch.stack([ratios(ratio, 1 / ratio, 1.0)[0], ratios(1.0, 1.0, 1.0)[0]])  # both ratios of sequences are 1
    window = {"low": 0.9, "high": 1.1}
    assert weights(kind, gaps, **window).all()
    assert weights(kind, gaps, veto=1e-4, **window)[:, 0].tolist() == [kept, 1.0]
    masked = torch.tensor([[False, False, True], [True, True, True]])
    assert weights(kind, gaps, masked, veto=1e-4, **window).all()


# Why sequence weights die with the length


@pytest.mark.parametrize(("gap", "tokens", "ratio"), [(0.012, 100, math.exp(1.2)), (1e-3, 8192, 3612.0)])
def test_a_small_bias_of_every_token_multiplies_up_and_has_a_constant_geometric_mean(gap, tokens, ratio):
    old, rollout = torch.full((1, tokens), gap, dtype=torch.float64), torch.zeros(1, tokens)
    mask = torch.ones(1, tokens, dtype=torch.bool)
    assert product(old, rollout, mask).item() == pytest.approx(ratio, rel=1e-4)
    assert geometric(old, rollout, mask).item() == near(math.exp(gap), 1e-9)


# Settings


@pytest.mark.parametrize("kind", ["mask_sequence_product", "mask_sequence_geometric"])
def test_the_window_of_a_mask_has_no_default(kind):
    """What fits hundreds of tokens drops nearly everything of a dozen."""
    with pytest.raises(ValidationError, match="low\n  Field required"):
        TypeAdapter(Correction).validate_python({"kind": kind})


@pytest.mark.parametrize("kind", ["icepop", "mask_sequence_product", "mask_sequence_geometric"])
@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ({"low": 1.0, "high": 1.0}, "would reject everything"),
        ({"low": 1.1, "high": 2.0}, "low"),
        ({"low": 0.5, "high": 0.9}, "high"),
    ],
)
def test_a_window_that_leaves_out_agreement_is_refused(kind, window, problem):
    with pytest.raises(ValidationError, match=problem):
        TypeAdapter(Correction).validate_python({"kind": kind, **window})


@pytest.mark.parametrize("ambiguous", ["tis_sequence", "mask_sequence", "tis", "mis"])
def test_a_name_that_does_not_say_how_tokens_are_joined_does_not_exist(ambiguous):
    with pytest.raises(ValidationError):
        TypeAdapter(Correction).validate_python({"kind": ambiguous})


# OPSM


@pytest.mark.parametrize(
    ("moved", "advantage", "kept"),
    [(0.6, -1.0, 0.0), (0.4, -1.0, 1.0), (0.6, 1.0, 1.0), (-5.0, -1.0, 1.0), (0.6, 0.0, 1.0), (9.0, 1.0, 1.0)],
)
def test_only_a_bad_answer_that_the_policy_has_left_is_dropped(moved, advantage, kept):
    old = torch.zeros(1, 2)
    logp = torch.tensor([[0.1 - moved, -0.1 - moved]])  # the mean over the tokens counts
    mask = torch.ones(1, 2, dtype=torch.bool)
    found = off_policy_mask(logp, old, torch.full((1, 2), advantage), mask, OffPolicyMask(delta=0.5))
    assert found.tolist() == [[kept, kept]]
