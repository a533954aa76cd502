"""The objective of one run: a batch as it is taken, which of its rows have a gradient, and the adaptive coefficients,
which are a part of the learner's state."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from components.config.exploration import KlCov
from components.config.objective import ObjectiveSettings
from components.errors import InputError
from components.learner.batch import Batch
from components.objectives.controllers import (
    Coefficients,
    adaptive_entropy,
    adaptive_kl,
    applied_entropy_coefficient,
    next_beta,
    next_entropy_coefficient,
)
from components.objectives.ratios import RATIOS
from components.objectives.tokens import TokenInputs, usable


def advantages_of(batch: Batch) -> Tensor:
    """The advantages of a batch that has them."""
    if batch.advantages is None:
        raise ValueError("the advantages have not been assigned")
    return batch.advantages


def token_inputs(batch: Batch, old_logp: Tensor) -> TokenInputs:
    """The objective's view of a batch whose advantages and aggregation weights are set."""
    if batch.weights is None:
        raise ValueError("the weights of the tokens have not been set")
    return TokenInputs(
        mask=batch.response_mask,
        weights=batch.weights,
        advantages=advantages_of(batch),
        rollout_logp=batch.rollout_logp,
        old_logp=old_logp,
        ref_logp=batch.ref_logp,
        forced=batch.forced,
        selected=batch.selected,
    )


def rows_with_gradient(batch: Batch, objective: ObjectiveSettings, coefficients: Coefficients) -> Tensor:
    """``[B]`` bool, the rows that may have a gradient; all where none has, because an optimizer steps all the same.

    No backward pass is made for the others. A group whose completions are all right or all wrong has advantages of 0,
    and everything that multiplies them is 0. Such rows are scored like all others, and the loss and every signal count
    them.
    """
    rows = ((advantages_of(batch) != 0) & batch.response_mask).any(1)
    if not only_advantages(objective, coefficients) or not rows.any():
        return torch.ones_like(rows)
    return rows


def only_advantages(objective: ObjectiveSettings, coefficients: Coefficients) -> bool:
    """Whether every term of the loss is a multiple of an advantage."""
    return not (
        RATIOS.choose(objective.ratio).entry.without_advantage
        or coefficients.kl
        or coefficients.entropy
        or isinstance(objective.selection, KlCov)
    )


class Controller:
    """Holds beta and the entropy coefficient. Static ones never change."""

    def __init__(self, settings: ObjectiveSettings) -> None:
        self._settings = settings
        self.coefficients = Coefficients.initial(settings)
        self._entropy = math.inf  # nats per token, the latest that was observed

    def configure(self, settings: ObjectiveSettings) -> None:
        """Other settings from now on. A static coefficient is what they say; one that follows a measurement goes
        on from where it is, unless its section has changed."""
        start = Coefficients.initial(settings)
        if adaptive_kl(settings) is None or settings.kl != self._settings.kl:
            self.coefficients = self.coefficients._replace(kl=start.kl)
        if adaptive_entropy(settings) is None or settings.entropy != self._settings.entropy:
            self.coefficients = self.coefficients._replace(entropy=start.entropy)
        self._settings = settings

    @property
    def needs_entropy(self) -> bool:
        """Whether the entropy has to be known before the update."""
        return adaptive_entropy(self._settings) is not None

    def observe_entropy(self, entropy: Tensor) -> None:
        """Entropies (nats) of the tokens that count, before the update; those that are no numbers say nothing."""
        known = entropy[usable(entropy)]
        if self._settings.entropy is None or not known.numel():
            return
        self._entropy = known.double().mean().item()
        new = next_entropy_coefficient(self.coefficients.entropy, self._entropy, self._settings.entropy)
        self.coefficients = self.coefficients._replace(entropy=new)

    def observe_kl(self, kl: float | None, completions: int) -> None:
        """KL to the reference (nats per token) of the policy that sampled the batch, where it was measured."""
        target = adaptive_kl(self._settings)
        if target is None or kl is None or not math.isfinite(kl):
            return
        self.coefficients = self.coefficients._replace(kl=next_beta(self.coefficients.kl, kl, target, completions))

    def applied(self) -> Coefficients:
        """What multiplies the terms of the present update."""
        if self._settings.entropy is None:
            return self.coefficients
        bonus = applied_entropy_coefficient(self.coefficients.entropy, self._entropy, self._settings.entropy)
        return self.coefficients._replace(entropy=bonus)

    def signals(self) -> dict[str, float]:
        """``kl_beta`` and ``entropy_coef`` as applied, where the objective has such a term."""
        applied = self.applied()
        found = {"kl_beta": applied.kl} if self._settings.kl else {}
        return {**found, "entropy_coef": applied.entropy} if self._settings.entropy else found

    def state_dict(self) -> dict[str, Any]:
        return {"kl_beta": self.coefficients.kl, "entropy_coef": self.coefficients.entropy}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved state; unknown or missing fields are errors."""
        if set(state) != set(self.state_dict()):
            raise InputError(f"unexpected fields in the learner's state: {sorted(state)}", how="start the stage afresh")
        self.coefficients = Coefficients(float(state["kl_beta"]), float(state["entropy_coef"]))
