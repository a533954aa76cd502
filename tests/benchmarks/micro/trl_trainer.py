"""TRL's `GRPOTrainer` without its dataset loop: its own generation, and its own update of a batch that we hand it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from components.types import Group
from tests.benchmarks.micro.cases import rows_at_once

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from trl import GRPOConfig, GRPOTrainer

Batches = list[dict[str, Any]]
"""What TRL makes of a batch, a dictionary for every forward and backward pass."""


class Trainer(GRPOTrainer):
    """The real trainer. Its prompts are token ids already, and the batches of its updates are made beforehand."""

    prompt_ids: Sequence[Sequence[int]] = ()

    def _send_telemetry(self) -> None:
        """Nothing leaves this machine."""

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return [list(self.prompt_ids[int(prompt)]) for prompt in prompts], None, {}

    def _prepare_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return inputs

    def sample(self, prompts: Sequence[Sequence[int]], group: int) -> list[list[int]]:
        """Completions, as a training step has them made: every prompt ``group`` times, decoded to text too."""
        self.prompt_ids = prompts
        self.model.train()
        _, completions, *_ = self._generate([str(place) for place in range(len(prompts)) for _ in range(group)])
        return completions

    def batches(self) -> Batches:
        """Scored, shuffled and parted as in a training step."""
        self.model.train()
        GRPOTrainer._prepare_inputs(self, [{"prompt": "0"}] * self.args.generation_batch_size)
        return list(self._buffered_inputs)

    def update(self, batches: Batches) -> tuple[float, float]:
        """One optimizer step as the training loop of transformers makes it; the loss, and the norm of the gradient."""
        if self.optimizer is None:
            if self.args.gradient_checkpointing:
                self.model.activation_checkpointing_enable(self.args.activation_checkpointing_kwargs)
            self.create_optimizer_and_scheduler(num_training_steps=1_000_000)
            self.model_wrapped, self.optimizer = self.accelerator.prepare(self.model, self.optimizer)
        self.current_gradient_accumulation_steps = len(batches)
        losses = [self.training_step(self.model_wrapped, batch, None) for batch in batches]
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
        self.optimizer.step()
        self.lr_scheduler.step()
        self.model.zero_grad()
        return float(sum(loss.item() for loss in losses)), float(norm)


def sampler(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, ends: Sequence[int], limit: int) -> Trainer:
    """TRL as it samples without vLLM; ``ends`` are the tokens that end a row, or nothing but the tokenizer's does."""
    model.generation_config.eos_token_id = list(ends) or [tokenizer.eos_token_id]
    return _trainer(model, tokenizer, None, [0.0], num_generations=2, max_completion_length=limit, use_cpu=True)


def updater(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    groups: Sequence[Group],
    pass_tokens: int,
    **settings: Any,
) -> Trainer:
    """TRL as it trains on these groups, in passes of at most ``pass_tokens`` padded tokens."""
    rows = [(group, completion) for group in groups for completion in group.completions]
    width = max(len(group.prompt_ids) for group in groups) + max(len(row.token_ids) for _, row in rows)
    at_once = rows_at_once(len(rows), width, pass_tokens)
    rollout = {
        "prompt_ids": [list(group.prompt_ids) for group, _ in rows],
        "completion_ids": [list(completion.token_ids) for _, completion in rows],
        "logprobs": None,
    }
    return _trainer(
        model,
        tokenizer,
        rollout,
        [score.reward for group in groups for score in group.scores],
        num_generations=len(groups[0].completions),
        max_completion_length=max(len(row.token_ids) for _, row in rows),
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=len(rows) // at_once,
        **settings,
    )


def _trainer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rollout: dict[str, Any] | None,
    rewards: list[float],
    **settings: Any,
) -> Trainer:
    def reward(completions: list[str], **_: Any) -> list[float]:
        return rewards

    with TemporaryDirectory() as folder:
        chosen = {"bf16": False, "gradient_checkpointing": False, **settings}
        return Trainer(
            model=model,
            reward_funcs=[reward],
            args=GRPOConfig(output_dir=folder, report_to="none", disable_tqdm=True, **chosen),
            train_dataset=Dataset.from_dict({"prompt": ["0"]}),
            processing_class=tokenizer,
            rollout_func=None if rollout is None else lambda prompts, trainer: rollout,
        )
