"""The embedded learner: one process, plain torch, exact gradients under any micro-batch split."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.files import read_json, write_json
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.optimizer_state import load_state, save_state
from components.learner.scoring import join, score, score_all
from components.learner.signals import TokenTotals, mismatch_signals, reference_signals
from components.objectives import AGGREGATIONS, TokenInputs, objective
from components.policy import Policy


class TorchLearner(Learner):
    """AdamW with linear warm-up and gradient clipping on an in-process model."""

    def __init__(
        self, policy: Policy, settings: LearnerSettings, objective: ObjectiveSettings, temperature: float
    ) -> None:
        self._policy, self._settings, self._objective = policy, settings, objective
        self._temperature = temperature
        self._parameters = dict(policy.model.named_parameters())
        policy.model.requires_grad_(True)
        self._optimizer = torch.optim.AdamW(
            self._parameters.values(), lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay
        )
        self._updates = 0

    def logprobs(self, batch: Batch) -> Tensor:
        return score_all(self._policy.model, batch, self._temperature, self._settings.micro_batch_tokens).logp

    def step(self, batch: Batch, seed: int) -> dict[str, float]:
        totals = TokenTotals()
        if self._settings.updates_per_step == 1:
            # The forward pass of the only update sees the old weights: a pass of its own would give the same numbers.
            loss, norm, old_logp = self._update(batch, totals)
            batch, updates = replace(batch, old_logp=old_logp), [(loss, norm)]
        else:
            batch = replace(batch, old_logp=self.logprobs(batch))
            updates = [self._update(batch.rows(rows), totals)[:2] for rows in self._mini_batches(len(batch), seed)]
        correction = self._objective.correction
        losses, norms = zip(*updates, strict=True)
        return {
            **mismatch_signals(batch, correction.cap if correction else None),
            **reference_signals(batch),
            **totals.means(),
            "loss": sum(losses) / len(losses),
            "grad_norm": max(norms),
            "nonfinite": float(sum(not math.isfinite(norm) for norm in norms)),
            "lr": self._lr(),
        }

    def _mini_batches(self, rows: int, seed: int) -> list[Tensor]:
        """A seeded partition of the rows into ``updates_per_step`` optimizer batches."""
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
        parts = order.tensor_split(min(rows, self._settings.updates_per_step))
        return [part.sort().values for part in parts]

    def _update(self, batch: Batch, totals: TokenTotals) -> tuple[float, float, Tensor]:
        """One optimizer step: loss, gradient norm, and the log-probabilities before it.

        ``old_logp`` that is not set is that of the present weights. A non-finite gradient changes nothing.
        """
        batch = replace(batch, weights=AGGREGATIONS[self._objective.aggregation](batch.response_mask))
        self._optimizer.zero_grad(set_to_none=True)
        loss, logps = 0.0, []
        for part in batch.micro_batches(self._settings.micro_batch_tokens):
            stats = score(self._policy.model, part, self._temperature)
            logps.append(stats.logp.detach())
            old = logps[-1] if part.old_logp is None else part.old_logp
            terms = objective(stats.logp, token_inputs(part, old), self._objective)
            terms.loss.backward()  # type: ignore[no-untyped-call]
            loss += terms.loss.item()
            totals.add(part.response_mask, stats.entropy, terms.tokens)
        norm = torch.nn.utils.clip_grad_norm_(self._parameters.values(), self._settings.grad_clip).item()
        if math.isfinite(norm):
            self._updates += 1
            for group in self._optimizer.param_groups:
                group["lr"] = self._lr()
            self._optimizer.step()
        return loss, norm, join(logps, batch.responses)

    def _lr(self) -> float:
        """Learning rate of the latest update: linear warm-up, then constant."""
        return self._settings.lr * min(1.0, self._updates / max(1, self._settings.warmup))

    def weights(self) -> dict[str, Tensor]:
        return self._policy.weights()

    def save_policy(self, directory: Path) -> None:
        self._policy.save(directory)

    def save(self, directory: Path) -> None:
        save_state(directory / "learner.safetensors", self._parameters, self._optimizer)
        write_json(directory / "learner.json", {"updates": self._updates})

    def load(self, directory: Path) -> None:
        load_state(directory / "learner.safetensors", self._parameters, self._optimizer)
        self._updates = int(read_json(directory / "learner.json")["updates"])


def token_inputs(batch: Batch, old_logp: Tensor) -> TokenInputs:
    """The objective's view of a batch whose aggregation weights are set."""
    if batch.weights is None:
        raise ValueError("the weights of the tokens have not been set")
    return TokenInputs(
        batch.response_mask, batch.weights, batch.advantages, batch.rollout_logp, old_logp, batch.ref_logp
    )
