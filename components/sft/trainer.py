"""Supervised fine-tuning on demonstrations: next-token cross-entropy of the answer, given the question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from components.config.policy import SftSettings
from components.learner.optimizer_state import load_state, save_state
from components.policy import Policy, response_logprobs
from components.policy.padding import pad
from components.seeds import derive
from components.types import Prompt

SORTED_BATCHES = 16
"""Batches whose rows are sorted by length together: less padding, at the price of a little less mixing."""


class SftTrainer:
    """AdamW with linear warm-up and cosine decay; the batch of a step is a function of seed and step."""

    def __init__(self, policy: Policy, prompts: Sequence[Prompt], settings: SftSettings, seed: int) -> None:
        self._policy, self._settings, self._seed = policy, settings, seed
        self._rows = [(policy.encode_prompt(p.text), policy.encode_answer(p.demonstration)) for p in prompts]
        self._parameters = dict(policy.model.named_parameters())
        self._optimizer = torch.optim.AdamW(
            self._parameters.values(), lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay
        )

    def step(self, step: int) -> dict[str, float]:
        """One update; ``step`` counts from 0. Returns the loss in nats per answer token."""
        rows = [self._rows[i] for i in self._batch(step)]
        batch = pad([prompt for prompt, _ in rows], [answer for _, answer in rows], self._policy.pad_id)
        width = batch.response_mask.shape[1]
        self._policy.model.train()
        stats = response_logprobs(self._policy.model, batch.input_ids, batch.attention_mask, width, temperature=1.0)
        loss = -stats.logp[batch.response_mask].mean()
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._parameters.values(), self._settings.grad_clip)
        lr = self._settings.lr * learning_rate_factor(step, self._settings.warmup, self._settings.steps)
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        self._optimizer.step()
        return {"loss": loss.item(), "lr": lr}

    def _batch(self, step: int) -> list[int]:
        """Row numbers of a step; every row once an epoch."""
        size = self._settings.batch_size
        per_epoch = -(-len(self._rows) // size)
        return self._epoch(step // per_epoch)[step % per_epoch]

    @lru_cache(maxsize=1)  # noqa: B019 - one epoch of one trainer, dropped with it
    def _epoch(self, epoch: int) -> list[list[int]]:
        """Batches of similar length in random order: rows are shuffled, then sorted within runs of several batches."""
        rng, size = np.random.default_rng(derive(self._seed, "sft", epoch)), self._settings.batch_size
        order = rng.permutation(len(self._rows)).tolist()
        batches: list[list[int]] = []
        for start in range(0, len(order), size * SORTED_BATCHES):
            run = sorted(order[start : start + size * SORTED_BATCHES], key=self._length)
            batches += [run[i : i + size] for i in range(0, len(run), size)]
        return [batches[int(i)] for i in rng.permutation(len(batches))]

    def _length(self, row: int) -> int:
        return sum(map(len, self._rows[row]))

    def save(self, directory: Path) -> None:
        save_state(directory / "sft.safetensors", self._parameters, self._optimizer)

    def load(self, directory: Path) -> None:
        load_state(directory / "sft.safetensors", self._parameters, self._optimizer)


def learning_rate_factor(step: int, warmup: int, steps: int) -> float:
    """Linear from 0 to 1 over ``warmup`` steps, then a cosine to 0 at ``steps``."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


