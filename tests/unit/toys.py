"""Small batches of log-probabilities that the tests of the objective are made of. No model, no tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import pytest
import torch
from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.objectives.aggregation import AGGREGATIONS
from components.objectives.objective import objective
from components.objectives.tokens import TokenInputs


def near(expected: object, tolerance: float = 1e-4) -> Any:
    """Equal up to an absolute tolerance."""
    return pytest.approx(expected, abs=tolerance)


def lengths(*sizes: int, width: int | None = None) -> Tensor:
    """A mask whose rows have that many tokens, in front."""
    return torch.arange(width if width is not None else max(sizes))[None, :] < torch.tensor(sizes)[:, None]


def kinds(union: Any) -> set[str]:
    """What ``kind`` may be in a discriminated union of settings, or in one section."""
    sections = get_args(get_args(union)[0]) or get_args(union)[:1]
    return {kind for section in sections for kind in get_args(section.model_fields["kind"].annotation)}


def settings(**sections: Any) -> ObjectiveSettings:
    """An objective with neither correction nor KL unless they are given; sections are written as in YAML."""
    return ObjectiveSettings.model_validate({"correction": None, **sections})


def sequence(differences: list[float], advantage: float, *, old: float = -2.0) -> tuple[Tensor, TokenInputs]:
    """One completion that differs from the old policy by these log-ratios; the sampler was the old policy."""
    before = torch.full((1, len(differences)), old, dtype=torch.float64)
    mask = torch.ones(1, len(differences), dtype=torch.bool)
    weights = mask.double() / len(differences)
    inputs = TokenInputs(mask, weights, torch.full_like(before, advantage), before, before)
    return (before + torch.tensor([differences], dtype=torch.float64)).requires_grad_(), inputs


class Toy(NamedTuple):
    """A linear softmax policy over V actions, and a batch that was sampled from one near it.

    ``logp(weight)`` are the log-probabilities ``[B, R]`` of the actions. The advantages are constant over each row.
    """

    weight: Tensor  # [D, V]
    states: Tensor  # [B, R, D]
    actions: Tensor  # [B, R]
    groups: Tensor  # [B]
    inputs: TokenInputs

    def distribution(self, weight: Tensor) -> Tensor:
        """Log-probabilities of all actions, ``[B, R, V]``."""
        return torch.log_softmax(self.states @ weight, -1)

    def logp(self, weight: Tensor) -> Tensor:
        return self.distribution(weight).gather(-1, self.actions[..., None]).squeeze(-1)

    def entropy(self, weight: Tensor) -> Tensor:
        distribution = self.distribution(weight)
        return -(distribution.exp() * distribution).sum(-1)

    def weighed(self, chosen: ObjectiveSettings) -> Toy:
        """The same with the weights of the settings' aggregation."""
        return self._replace(inputs=self.inputs._replace(weights=weights_of(self.inputs.mask, self.groups, chosen)))

    def on_policy(self) -> Toy:
        """The same, sampled from the present policy."""
        logp = self.logp(self.weight).detach()
        return self._replace(inputs=self.inputs._replace(old_logp=logp, rollout_logp=logp))

    def map(self, change: Callable[[Tensor], Tensor]) -> Toy:
        """Every tensor of the batch (not the policy's weight) changed."""
        inputs = TokenInputs(*(None if values is None else change(values) for values in self.inputs))
        return Toy(self.weight, change(self.states), change(self.actions), change(self.groups), inputs)


def weights_of(mask: Tensor, groups: Tensor, chosen: ObjectiveSettings) -> Tensor:
    """``[B, R]`` fp64 weights of the settings' aggregation."""
    return AGGREGATIONS[chosen.aggregation.kind](mask, groups, chosen.aggregation).double()


def toy(*sizes: int, width: int | None = None, vocab: int = 4, seed: int = 0, noise: float = 0.3) -> Toy:
    """Rows of these lengths, two to a group. ``noise`` is how far apart the policies are, in logits."""
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)

    mask = lengths(*sizes, width=width)
    rows, columns = mask.shape
    weight = randn(3, vocab)
    states = randn(rows, columns, 3)
    actions = torch.randint(vocab, (rows, columns), generator=generator)
    advantages = randn(rows, 1).expand(rows, columns).clone()
    found = Toy(weight, states, actions, torch.arange(rows) // 2, TokenInputs(*(torch.empty(0),) * 5))
    rollout, old, ref = (found.logp(weight + randn(3, vocab, scale=noise)) for _ in range(3))
    selected = torch.rand(rows, columns, generator=generator) < 0.5
    inputs = TokenInputs(mask, mask.double(), advantages, rollout, old, ref, None, selected)
    return found._replace(inputs=inputs)


def run(batch: Toy, chosen: ObjectiveSettings) -> tuple[float, Tensor]:
    """The loss, and its gradient with respect to the policy's weight."""
    weight = batch.weight.detach().clone().requires_grad_()
    loss = objective(batch.logp(weight), batch.inputs, chosen, entropy=batch.entropy(weight)).loss
    loss.backward()
    return loss.item(), weight.grad


def token_gradient(logp: Tensor, inputs: TokenInputs, chosen: ObjectiveSettings, **more: Any) -> tuple[float, Tensor]:
    """The loss, and its gradient with respect to each log-probability ``[B, R]``."""
    logp = logp.detach().clone().requires_grad_()
    loss = objective(logp, inputs, chosen, **more).loss
    loss.backward()
    return loss.item(), logp.grad
