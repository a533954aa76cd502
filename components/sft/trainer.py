"""Supervised fine-tuning on demonstrations: next-token cross-entropy of the answer, given the question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from components.config.policy import SftSettings
from components.errors import InputError
from components.learner.batch import Batch, batch_of_rows
from components.learner.cuts import runs
from components.learner.optimizer import warmup_then_cosine
from components.learner.supervised import Epochs, Supervision, Terms
from components.learner.supervised_leader import Build, alone
from components.policy import Policy
from components.seeds import derive
from components.tools import Segment, Tool
from components.types import Prompt

SLICES = 2
"""Slices of a batch, sorted by length: the same gradient with less padding. More of them cost more than they save."""


class Row(NamedTuple):
    """Token ids of a question and of its answer, and which of the answer's the policy is to learn."""

    question: tuple[int, ...]
    answer: tuple[int, ...]
    learned: tuple[bool, ...]


class CrossEntropy(Supervision[Row]):
    """The mean over all tokens of an update that are learned of their negative log-probability, in nats."""

    state, figures, rows, unit, dropout = "sft", ("loss",), 1, "rows", True
    settings: SftSettings

    def tokens(self, example: Row) -> int:
        return _length(example)

    def size(self, examples: Sequence[Row]) -> int:
        return sum(sum(row.learned) for row in examples)

    def passes(self, examples: Sequence[Row]) -> list[list[int]]:
        ordered = sorted(range(len(examples)), key=lambda number: _length(examples[number]))
        size = max(1, -(-len(ordered) // SLICES))
        slices = (ordered[start : start + size] for start in range(0, len(ordered), size))
        most = self.settings.micro_batch_tokens
        return [part for rows in slices for part in runs(rows, lambda some: _padded_tokens(examples, some), most)]

    def batch(self, examples: Sequence[Row]) -> Batch:
        batch = batch_of_rows([(row.question, row.answer) for row in examples], self.pad_id)
        width = batch.responses
        learned = torch.tensor([[*row.learned, *[False] * (width - len(row.learned))] for row in examples])
        return replace(batch, response_mask=learned)

    def terms(self, logp: Tensor, batch: Batch, size: int) -> Terms:
        loss = -logp.sum() / size
        return Terms(loss, loss.detach().double()[None])


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
        *,
        build: Build = alone,
    ) -> None:
        self._settings, self._seed = settings, seed
        self._rows = [encode(policy, prompt, tool) for prompt in prompts]
        self._epochs = Epochs(len(prompts), settings.batch_size, seed, "sft")
        check_lengths(self._rows, prompts, policy.max_positions)
        self.learner = build(policy, CrossEntropy(settings, policy.pad_id))

    def step(self, step: int) -> dict[str, float]:
        """One update; ``step`` counts from 0. Returns the loss in nats per token that is learned, and ``nonfinite``
        where the gradient was not finite, which changes nothing.

        Raises:
            InputError: the loss is not finite.
        """
        rows = [self._rows[i] for i in self._epochs.batch(step)]
        lr = self._settings.lr * warmup_then_cosine(step, self._settings.warmup, self._settings.steps)
        figures = self.learner.step(rows, lr, derive(self._seed, "dropout", step))
        if not math.isfinite(figures["loss"]):
            how = "lower sft.lr, or look at the model: its weights may be damaged"
            raise InputError(f"the loss of step {step} is {figures['loss']}", where="stage sft", how=how)
        ignored = {} if math.isfinite(figures["grad_norm"]) else {"nonfinite": 1.0}
        return {"loss": figures["loss"], "lr": lr, **ignored}

    def save(self, directory: Path) -> None:
        self.learner.save(directory)

    def load(self, directory: Path) -> None:
        self.learner.load(directory)


def encode(policy: Policy, prompt: Prompt, tool: Tool | None) -> Row:
    """Token ids of a question and its demonstration, end token included.

    Stretches of policy and tool are encoded one by one, because that is how they come about: the tool's tokens are
    appended to what the policy has sampled, and no token reaches from one into the other.
    """
    segments = tool.segments(prompt.demonstration) if tool else [Segment(prompt.demonstration, True)]
    answer: list[int] = []
    learned: list[bool] = []
    for text, sampled in segments:
        ids = policy.encode_text(text)
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


def _padded_tokens(rows: Sequence[Row], numbers: Sequence[int]) -> int:
    """Size of the rectangle that holds some of the rows."""
    question, answer = (max(len(rows[number][part]) for number in numbers) for part in (0, 1))
    return len(numbers) * (question + answer)


def _length(row: Row) -> int:
    return len(row.question) + len(row.answer)
