"""Supervised fine-tuning on demonstrations: next-token cross-entropy of the answer, given the question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from components.config.policy import SftSettings
from components.errors import InputError
from components.learner.epochs import Epochs
from components.learner.optimizer import ClippedAdamW, warmup_then_cosine
from components.learner.scoring_module import autocast
from components.policy import Policy, response_logprobs
from components.policy.padding import pad
from components.seeds import derive
from components.tools import Segment, Tool
from components.types import Prompt
from components.working import working

SLICES = 2
"""Slices of a batch, sorted by length: the same gradient with less padding. More of them cost more than they save."""


class Row(NamedTuple):
    """Token ids of a question and of its answer, and which of the answer's the policy is to learn."""

    question: tuple[int, ...]
    answer: tuple[int, ...]
    learned: tuple[bool, ...]


class SftTrainer:
    """AdamW with linear warm-up and cosine decay; the batch of a step is a function of seed and step.

    With a ``tool``, what it would write in a demonstration is read by the policy and not learned.
    """

    def __init__(
        self,
        policy: Policy,
        prompts: Sequence[Prompt],
        settings: SftSettings,
        seed: int,
        tool: Tool | None = None,
    ) -> None:
        self._policy, self._settings, self._seed = policy, settings, seed
        self._rows = [encode(policy, prompt, tool) for prompt in prompts]
        self._epochs = Epochs(len(prompts), settings.batch_size, seed, "sft")
        check_lengths(self._rows, prompts, policy.max_positions)
        self._optimizer = ClippedAdamW(policy.trainable(), settings)

    def step(self, step: int) -> dict[str, float]:
        """One update; ``step`` counts from 0. Returns the loss in nats per token that is learned."""
        rows = sorted((self._rows[i] for i in self._epochs.batch(step)), key=_length)
        tokens = sum(sum(row.learned) for row in rows)
        torch.manual_seed(derive(self._seed, "dropout", step))
        self._policy.model.train()
        self._optimizer.zero_grad()
        loss = 0.0
        size = -(-len(rows) // SLICES)
        with working("updating", len(rows), "rows") as work:
            for start in range(0, len(rows), size):
                part = self._negative_log_likelihood(rows[start : start + size]) / tokens
                part.backward()  # type: ignore[no-untyped-call]
                loss += part.item()
                work.add(len(rows[start : start + size]))
            lr = self._settings.lr * warmup_then_cosine(step, self._settings.warmup, self._settings.steps)
            self._optimizer.step(lr)
        return {"loss": loss, "lr": lr}

    def _negative_log_likelihood(self, rows: Sequence[Row]) -> Tensor:
        batch = pad([row.question for row in rows], [row.answer for row in rows], self._policy.pad_id)
        width = batch.response_mask.shape[1]
        learned = torch.tensor([[*row.learned, *[False] * (width - len(row.learned))] for row in rows])
        model = self._policy.model
        with autocast(model, self._settings.compute_dtype):
            stats = response_logprobs(model, batch.input_ids, batch.attention_mask, width, 1.0, mask=learned)
        return -stats.logp.sum()

    def save(self, directory: Path) -> None:
        self._optimizer.save(directory / "sft.safetensors")

    def load(self, directory: Path) -> None:
        self._optimizer.load(directory / "sft.safetensors")


def encode(policy: Policy, prompt: Prompt, tool: Tool | None) -> Row:
    """Token ids of a question and its demonstration, end token included.

    Stretches of policy and tool are encoded one by one, because that is how they come about: the tool's tokens are
    appended to what the policy has sampled, and no token reaches from one into the other.
    """
    segments = tool.segments(prompt.demonstration) if tool else [Segment(prompt.demonstration, True)]
    answer: list[int] = []
    learned: list[bool] = []
    for text, sampled in segments:
        ids = policy.tokenizer.encode(text, add_special_tokens=False)
        answer += ids
        learned += [sampled] * len(ids)
    return Row(policy.encode_prompt(prompt.text), (*answer, policy.eos_id), (*learned, True))


def check_lengths(rows: Sequence[Row], prompts: Sequence[Prompt], limit: int | None) -> None:
    """Refuse a demonstration that is longer than the model's positions."""
    for row, prompt in zip(rows, prompts, strict=True):
        if limit is not None and _length(row) > limit:
            raise InputError(
                f"question and demonstration have {_length(row)} tokens, the model has {limit} positions",
                where=f"prompt {prompt.id}",
                how="lower data.validation.max_question_chars and max_solution_chars, or use a longer model",
            )


def _length(row: Row) -> int:
    return len(row.question) + len(row.answer)
