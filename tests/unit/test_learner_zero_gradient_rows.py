"""Rows without a gradient: no backward pass is made for them, and nothing else is different."""

from __future__ import annotations

import pytest
import torch
from factories import policy

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.learner import torch_learner
from components.learner.batch import Batch
from components.learner.objective import only_advantages, rows_with_gradient
from components.learner.torch_learner import TorchLearner
from components.objectives.controllers import Coefficients
from components.objectives.objective import objective
from components.objectives.ratios import RATIOS
from components.objectives.tokens import TokenInputs

NONE = Coefficients(0.0, 0.0)


def batch(flat: tuple[int, ...] = (0, 3)) -> Batch:
    """Five rows; those of ``flat`` have no advantage."""
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 200, (5, 9), generator=draw)
    advantages = torch.randn(5, 6, generator=draw)
    advantages[list(flat)] = 0.0
    return Batch(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        group=torch.arange(5),
        member=torch.zeros(5, dtype=torch.long),
        response_mask=torch.ones(5, 6, dtype=torch.bool),
        rollout_logp=torch.full((5, 6), -2.0),
        advantages=advantages,
        ref_logp=torch.full((5, 6), -2.0),
    )


def test_rows_without_an_advantage_do_not_move():
    assert rows_with_gradient(batch(), ObjectiveSettings(), NONE).tolist() == [False, True, True, False, True]


def test_where_no_row_moves_all_are_taken_because_moments_and_decay_go_on():
    assert rows_with_gradient(batch(flat=(0, 1, 2, 3, 4)), ObjectiveSettings(), NONE).all()


@pytest.mark.parametrize(
    ("settings", "coefficients"),
    [
        ({"kl": {"kind": "k3", "beta": 0.1}}, Coefficients(0.1, 0.0)),
        ({"entropy": {"coef": 0.1}}, Coefficients(0.0, 0.1)),
        ({"selection": {"kind": "kl_cov"}}, NONE),
        ({"ratio": {"kind": "dro"}}, NONE),
    ],
    ids=["kl", "entropy bonus", "kl-cov", "dro"],
)
def test_all_rows_move_where_a_term_is_no_multiple_of_the_advantage(settings, coefficients):
    assert not only_advantages(ObjectiveSettings.model_validate(settings), coefficients)
    assert rows_with_gradient(batch(), ObjectiveSettings.model_validate(settings), coefficients).all()


@pytest.mark.parametrize("kind", RATIOS)
def test_what_is_said_of_a_ratio_family_is_true(kind):
    """Off policy, a token without advantage has a gradient in the families that are named, and in no other."""
    logp = torch.linspace(-3, -1, 8).view(2, 4).requires_grad_()
    inputs = TokenInputs(
        mask=torch.ones(2, 4, dtype=torch.bool),
        weights=torch.full((2, 4), 1 / 8),
        advantages=torch.zeros(2, 4),
        rollout_logp=torch.full((2, 4), -2.0),
        old_logp=torch.full((2, 4), -2.0),
        ref_logp=None,
        forced=None,
        selected=None,
    )
    settings = ObjectiveSettings.model_validate({"ratio": {"kind": kind}})
    objective(logp, inputs, settings).loss.backward()
    assert bool(logp.grad.any()) == RATIOS[kind].without_advantage


@pytest.mark.parametrize("updates", [1, 2])
def test_an_update_is_the_one_that_all_rows_would_give(monkeypatch, updates):
    def every(batch: Batch, *_: object) -> torch.Tensor:
        return torch.ones(len(batch), dtype=torch.bool)

    def trained(every_row: bool) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
        model = policy()
        settings = LearnerSettings(updates_per_step=updates, micro_batch_tokens=64, lr=1e-3)
        learner = TorchLearner(model, settings, ObjectiveSettings(), temperature=1.0)
        with monkeypatch.context() as patch:
            if every_row:
                patch.setattr(torch_learner, "rows_with_gradient", every)
            signals = learner.step(batch(), seed=0)
        return model.weights(), signals

    (ours, signals), (expected, expected_signals) = trained(every_row=False), trained(every_row=True)
    assert signals == pytest.approx(expected_signals, rel=1e-4, abs=1e-6)
    assert max(float((ours[name] - expected[name]).abs().max()) for name in expected) < 1e-6
