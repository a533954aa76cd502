"""TRL's training step on our tensors.

A real `GRPOTrainer` runs its own step: rewards to advantages, sampler correction, shuffle, split into micro-batches,
loss, scaling, backward. Only the log-probabilities and entropies of its model are ours, so that the gradient with
respect to them comes out.
"""

from __future__ import annotations

import os
from functools import cache
from tempfile import TemporaryDirectory

import pytest
import torch
from cases import Case, Found
from tokenizers import Tokenizer, models
from torch import nn

pytest.importorskip("trl", minversion="1.16.0", reason="TRL, a dependency of these tests alone, is not installed")
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

from datasets import Dataset
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.experimental.gmpo import GMPOConfig, GMPOTrainer

PAD, END, WORD, FIRST_ROW = 0, 1, 2, 3
PROMPTS = Dataset.from_dict({"prompt": ["word"]})


class _OurLogProbs:
    """The trainer with its forward pass replaced. Rows, which TRL shuffles, are known by their only prompt token."""

    def _get_per_token_logps_and_entropies(self, model, input_ids, *_, compute_entropy=False, **__):
        rows, columns = input_ids[:, 0] - FIRST_ROW, slice(input_ids.shape[1] - 1)
        if compute_entropy:
            return self.logp[rows, columns], self.entropy[rows, columns], None
        frozen = self.case.ref_logp if model is self.ref_model else self.case.old_logp
        return frozen[rows, columns], None, None

    def _send_telemetry(self):
        """Nothing leaves this machine."""


class _Grpo(_OurLogProbs, GRPOTrainer):
    pass


class _Gmpo(_OurLogProbs, GMPOTrainer):
    pass


def trl_step(
    case: Case, *, micro_batches: int = 1, sampler: bool = False, gmpo: bool = False, beta: float = 0.0, **settings
) -> Found:
    """Loss and gradient of one optimizer step, as the trainer's own loop would add them up.

    ``settings`` are fields of `GRPOConfig` (`GMPOConfig` with ``gmpo``); what is not named keeps TRL's default.
    ``sampler`` tells TRL that vLLM generated the completions, which turns its correction on.
    """
    trainer = _trainer(case, micro_batches, sampler, gmpo, settings)
    # Set afterwards, because the constructor would load the reference from disk and start vLLM.
    trainer.beta, trainer.ref_model = beta, nn.Identity() if beta else None
    trainer.use_vllm, trainer._last_loaded_step = sampler, trainer.state.global_step
    trainer.case, trainer.current_gradient_accumulation_steps = case, micro_batches
    trainer.logp, trainer.entropy = (values.clone().requires_grad_() for values in (case.logp, case.entropy))
    prompts = [{"prompt": "word"}] * len(case)
    loss = sum(trainer.training_step(trainer.model, prompts, None).item() for _ in range(micro_batches))
    gradients = (torch.zeros_like(x) if x.grad is None else x.grad for x in (trainer.logp, trainer.entropy))
    return Found(loss, *gradients, torch.tensor(list(trainer._logs["advantages"])))


def _trainer(case: Case, micro_batches: int, sampler: bool, gmpo: bool, settings: dict) -> GRPOTrainer:
    with TemporaryDirectory() as folder:
        config = (GMPOConfig if gmpo else GRPOConfig)(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            report_to="none",
            num_generations=len(case) // case.groups,
            per_device_train_batch_size=len(case) // micro_batches,
            gradient_accumulation_steps=micro_batches,
            num_iterations=2,  # without a second one TRL takes pi_old = pi
            **settings,
        )
        return (_Gmpo if gmpo else _Grpo)(
            model=_model(len(case)),
            reward_funcs=[_reward(column) for column in case.rewards.T.tolist()],
            args=config,
            train_dataset=PROMPTS,
            processing_class=_tokenizer(len(case)),
            rollout_func=lambda prompts, trainer: _rollout(case, sampler),
        )


def _reward(column: list[float]):
    return lambda completions, **_: [None if value != value else value for value in column]


def _rollout(case: Case, sampler: bool) -> dict[str, list | None]:
    """What TRL is told was sampled. A completion that does not end in END counts as truncated."""
    lengths = case.lengths.tolist()
    last = [WORD if truncated else END for truncated in case.truncated.tolist()]
    return {
        "prompt_ids": [[FIRST_ROW + row] for row in range(len(case))],
        "completion_ids": [[WORD] * (length - 1) + [end] for length, end in zip(lengths, last, strict=True)],
        "logprobs": [row[:n].tolist() for row, n in zip(case.rollout_logp, lengths, strict=True)] if sampler else None,
        "env_mask": [row[:n].int().tolist() for row, n in zip(case.mask, lengths, strict=True)],
    }


@cache
def _tokenizer(rows: int) -> PreTrainedTokenizerFast:
    words = ["<pad>", "<end>", "word", *(f"row{row}" for row in range(rows))]
    model = models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="word")
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model), pad_token="<pad>", eos_token="<end>")


@cache
def _model(rows: int) -> Qwen3ForCausalLM:
    """The trainer wants one; it is never run."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=FIRST_ROW + rows,
            hidden_size=4,
            intermediate_size=4,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
            head_dim=4,
            eos_token_id=END,
            pad_token_id=PAD,
        )
    )
