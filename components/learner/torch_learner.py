"""The embedded learner: one process, plain torch, exact gradients under any micro-batch split."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.files import dump_json, read_json, write_json
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.coefficients import Controller
from components.learner.optimizer import ClippedAdamW, accepted, warmup_then_constant
from components.learner.scoring import join, score, score_all
from components.learner.signals import TokenTotals, mismatch_signals, reference_signals
from components.objectives import AGGREGATIONS, SELECTIONS, Coefficients, SelectionInputs, TokenInputs, objective
from components.policy import Policy, TokenStats
from components.seeds import derive


class Update(NamedTuple):
    """One optimizer step: its loss, the gradient's norm, and the log-probabilities ``[B, R]`` before it."""

    loss: float
    norm: float
    logp: Tensor


class TorchLearner(Learner):
    """AdamW with linear warm-up and gradient clipping on an in-process model."""

    def __init__(
        self, policy: Policy, settings: LearnerSettings, objective: ObjectiveSettings, temperature: float
    ) -> None:
        self._policy, self._settings, self._objective = policy, settings, objective
        self._temperature = temperature
        policy.model.requires_grad_(True)
        self._optimizer = ClippedAdamW(dict(policy.model.named_parameters()), settings)
        self._updates = 0
        self._controller = Controller(objective)

    @property
    def coefficients(self) -> Coefficients:
        return self._controller.coefficients

    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        self._settings, self._objective = settings, objective
        self._controller.configure(objective)

    def logprobs(self, batch: Batch) -> Tensor:
        return self._score_all(batch).logp

    def _score(self, batch: Batch, entropy_grad: bool) -> TokenStats:
        how = self._settings
        return score(
            self._policy.model,
            batch,
            self._temperature,
            entropy_grad,
            logits_at_once=how.logits_at_once,
            replay=how.routing_replay,
        )

    def _score_all(self, batch: Batch) -> TokenStats:
        how = self._settings
        return score_all(
            self._policy.model,
            batch,
            self._temperature,
            how.micro_batch_tokens,
            logits_at_once=how.logits_at_once,
            replay=how.routing_replay,
        )

    def step(self, batch: Batch, seed: int, norm_limit: float = math.inf) -> dict[str, float]:
        totals = TokenTotals()
        batch = self._prepared(batch, seed)
        updates = [self._update(batch.rows(rows), totals, norm_limit) for rows in self._mini_batches(len(batch), seed)]
        if batch.old_logp is None:
            # The forward pass of the only update saw the old weights: a pass of its own would give the same numbers.
            batch = replace(batch, old_logp=updates[0].logp)
        reference = reference_signals(batch)
        signals = {
            **mismatch_signals(batch, self._objective.correction),
            **reference,
            **totals.means(),
            **self._controller.signals(),
            "loss": sum(update.loss for update in updates) / len(updates),
            "grad_norm": max(update.norm for update in updates),
            "nonfinite": float(sum(not math.isfinite(update.norm) for update in updates)),
            "updates_skipped": float(sum(not accepted(update.norm, norm_limit) for update in updates)),
            "staleness": (len(updates) - 1) / 2,
            "lr": self._lr(self._updates),
        }
        self._controller.observe_kl(reference.get("kl_ref"), len(batch))
        return signals

    def _prepared(self, batch: Batch, seed: int) -> Batch:
        """The batch with what has to be known before its first update; that takes a forward pass of its own."""
        several = self._settings.updates_per_step > 1
        if not (several or self._objective.selection or self._controller.needs_entropy):
            return batch
        stats = self._score_all(batch)
        mask = batch.response_mask
        self._controller.observe_entropy(stats.entropy[mask])
        batch = replace(batch, old_logp=stats.logp)
        if self._objective.selection is None:
            return batch
        generator = torch.Generator().manual_seed(derive(seed, "selection"))
        inputs = SelectionInputs(stats.logp, stats.entropy, advantages_of(batch), mask)
        chosen = SELECTIONS[self._objective.selection.kind](inputs, self._objective.selection, generator)
        return replace(batch, selected=chosen)

    def _mini_batches(self, rows: int, seed: int) -> list[Tensor]:
        """A seeded partition of the rows into ``updates_per_step`` optimizer batches."""
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
        parts = order.tensor_split(min(rows, self._settings.updates_per_step))
        return [part.sort().values for part in parts]

    def _update(self, batch: Batch, totals: TokenTotals, norm_limit: float) -> Update:
        """One optimizer step. ``old_logp`` that is not set is that of the present weights.

        A gradient that is not finite, or whose norm is above the limit, changes nothing.
        """
        aggregation = self._objective.aggregation
        weights = AGGREGATIONS[aggregation.kind](batch.response_mask, batch.group, aggregation)
        batch = replace(batch, weights=weights)
        self._optimizer.zero_grad()
        coefficients = self._controller.applied()
        loss, logps = 0.0, []
        for part in batch.micro_batches(self._settings.micro_batch_tokens):
            stats = self._score(part, entropy_grad=bool(coefficients.entropy))
            logps.append(stats.logp.detach())
            old = logps[-1] if part.old_logp is None else part.old_logp
            terms = objective(stats.logp, token_inputs(part, old), self._objective, coefficients, stats.entropy)
            terms.loss.backward()  # type: ignore[no-untyped-call]
            loss += terms.loss.item()
            totals.add(part.response_mask, stats.entropy, terms)
            totals.add_routing(part.response_mask, stats.routing)
        norm = self._optimizer.step(self._lr(self._updates + 1), norm_limit)
        self._updates += accepted(norm, norm_limit)
        return Update(loss, norm, join(logps, batch.responses))

    def _lr(self, update: int) -> float:
        """Learning rate of an update, counted from 1."""
        return self._settings.lr * warmup_then_constant(update, self._settings.warmup)

    def weights(self) -> dict[str, Tensor]:
        return self._policy.weights()

    def save_policy(self, directory: Path) -> None:
        self._policy.save(directory)

    def save(self, directory: Path) -> None:
        self._optimizer.save(directory / "learner.safetensors")
        write_json(directory / "learner.json", self._counters())

    def snapshot(self, directory: Path) -> Callable[[], None]:
        (directory / "learner.json").write_text(dump_json(self._counters()), "utf-8")
        return self._optimizer.snapshot(directory / "learner.safetensors")

    def _counters(self) -> dict[str, Any]:
        return {"updates": self._updates, **self._controller.state_dict()}

    def load(self, directory: Path) -> None:
        self._optimizer.load(directory / "learner.safetensors")
        state = read_json(directory / "learner.json")
        self._updates = int(state.pop("updates"))
        self._controller.load_state_dict(state)


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
