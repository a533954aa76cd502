"""The embedded learner: one process, plain torch, exact gradients under any micro-batch split."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import Tensor

from components.config.training import LearnerSettings, ObjectiveSettings
from components.files import read_json, write_json
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.optimizer_state import load_state, save_state
from components.learner.signals import TokenTotals, mismatch_signals, reference_signals
from components.objectives import AGGREGATIONS, TokenInputs, objective
from components.policy import Policy, TokenStats, response_logprobs


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

    def _score(self, batch: Batch) -> TokenStats:
        return response_logprobs(
            self._policy.model, batch.input_ids, batch.attention_mask, batch.responses, self._temperature
        )

    @torch.no_grad()
    def logprobs(self, batch: Batch) -> Tensor:
        self._policy.model.eval()
        parts = [self._score(batch.rows(rows)).logp for rows in batch.micro_batches(self._settings.micro_batch_tokens)]
        return torch.cat(parts)

    def step(self, batch: Batch, seed: int) -> dict[str, float]:
        correction = self._objective.correction
        signals = {**mismatch_signals(batch, correction.cap if correction else None), **reference_signals(batch)}
        totals, losses, norms, nonfinite = TokenTotals(), [], [], 0
        for rows in self._mini_batches(len(batch), seed):
            loss, norm = self._update(batch.rows(rows), totals)
            finite = math.isfinite(norm)
            nonfinite += not finite
            losses.append(loss)
            norms.append(norm if finite else 0.0)
        signals |= totals.means()
        return {
            **signals,
            "loss": sum(losses) / len(losses) if all(map(math.isfinite, losses)) else 0.0,
            "grad_norm": max(norms),
            "nonfinite": float(nonfinite),
            "lr": self._lr(),
        }

    def _mini_batches(self, rows: int, seed: int) -> list[Tensor]:
        """A seeded partition of the rows into ``updates_per_step`` optimizer batches."""
        if self._settings.updates_per_step == 1:
            return [torch.arange(rows)]
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
        return [part for part in order.chunk(self._settings.updates_per_step) if len(part)]

    def _update(self, batch: Batch, totals: TokenTotals) -> tuple[float, float]:
        """One optimizer step; a non-finite gradient leaves weights and optimizer as they were."""
        if batch.old_logp is None:
            raise ValueError("an update needs old_logp; call logprobs first")
        weights = AGGREGATIONS[self._objective.aggregation](batch.response_mask)
        self._optimizer.zero_grad(set_to_none=True)
        loss = 0.0
        for rows in batch.micro_batches(self._settings.micro_batch_tokens):
            part = batch.rows(rows)
            stats = self._score(part)
            inputs = TokenInputs(
                part.response_mask, weights[rows], part.advantages, part.rollout_logp, _set(part.old_logp), part.ref_logp
            )
            terms = objective(stats.logp, inputs, self._objective)
            terms.loss.backward()  # type: ignore[no-untyped-call]
            loss += terms.loss.item()
            tokens = terms.tokens
            totals.add(part.response_mask, stats.entropy, tokens.clipped_low, tokens.clipped_high, tokens.ratio.detach())
        norm = torch.nn.utils.clip_grad_norm_(self._parameters.values(), self._settings.grad_clip).item()
        if math.isfinite(norm):
            self._updates += 1
            for group in self._optimizer.param_groups:
                group["lr"] = self._lr()
            self._optimizer.step()
        return loss, norm

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


def _set(value: Tensor | None) -> Tensor:
    if value is None:
        raise ValueError("old_logp is not set")
    return value
