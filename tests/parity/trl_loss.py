"""TRL's training step on our tensors.

A real `GRPOTrainer` runs its own step: rewards to advantages, sampler correction, shuffle, split into micro-batches,
loss, scaling, backward. Generation is replaced through the hook that TRL has for it (``rollout_func``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from tempfile import TemporaryDirectory

import pytest
import torch
from cases import Case, Found
from tokenizers import Tokenizer, models
from torch import Tensor, nn

from components.types import Group

pytest.importorskip("trl", minversion="1.16.0", reason="TRL, a dependency of these tests alone, is not installed")
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

from datasets import Dataset
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.experimental.gmpo import GMPOConfig, GMPOTrainer

PAD, END, WORD, FIRST_ROW = 0, 1, 2, 3
PROMPTS = Dataset.from_dict({"prompt": ["word"]})


class _Grpo(GRPOTrainer):
    def _send_telemetry(self):
        """Nothing leaves this machine."""


class _Gmpo(GMPOTrainer):
    _send_telemetry = _Grpo._send_telemetry


class _OurLogProbs:
    """The trainer with its forward pass replaced. Rows, which TRL shuffles, are known by their only prompt token."""

    def _get_per_token_logps_and_entropies(self, model, input_ids, *_, compute_entropy=False, **__):
        rows, columns = input_ids[:, 0] - FIRST_ROW, slice(input_ids.shape[1] - 1)
        if compute_entropy:
            return self.logp[rows, columns], self.entropy[rows, columns], None
        frozen = self.case.ref_logp if model is self.ref_model else self.case.old_logp
        return frozen[rows, columns], None, None


class _GrpoOnOurLogProbs(_OurLogProbs, _Grpo):
    pass


class _GmpoOnOurLogProbs(_OurLogProbs, _Gmpo):
    pass


def trl_step(
    case: Case,
    *,
    micro_batches: int = 1,
    updates: int = 1,
    sampler: bool = False,
    gmpo: bool = False,
    beta: float = 0.0,
    **settings,
) -> Found:
    """Loss of one optimizer step, as the trainer's own loop would add it up, and its gradient.

    ``settings`` are fields of `GRPOConfig` (`GMPOConfig` with ``gmpo``); what is not named keeps TRL's default.
    ``sampler`` makes TRL assume vLLM as the sampler, which turns its correction on. With several ``updates``
    each takes its share of the rows and all start at the same ``logp``; their losses and gradients are added.
    """
    steps = micro_batches * updates
    trainer = _trainer(
        _GmpoOnOurLogProbs if gmpo else _GrpoOnOurLogProbs,
        _model(FIRST_ROW + len(case)),
        _rollout(case, sampler),
        case.rewards,
        num_generations=len(case) // case.groups,
        per_device_train_batch_size=len(case) // steps,
        gradient_accumulation_steps=micro_batches,
        steps_per_generation=steps,
        num_iterations=2,  # without a second one TRL takes pi_old = pi
        **settings,
    )
    # Set afterwards, because the constructor would load the reference from disk and start vLLM.
    trainer.beta, trainer.ref_model = beta, nn.Identity() if beta else None
    trainer.use_vllm, trainer._last_loaded_step = sampler, trainer.state.global_step
    trainer.case = case
    trainer.logp, trainer.entropy = (values.clone().requires_grad_() for values in (case.logp, case.entropy))
    loss = _run(trainer, len(case), steps)
    gradients = (torch.zeros_like(x) if x.grad is None else x.grad for x in (trainer.logp, trainer.entropy))
    return Found(loss, *gradients, torch.tensor(list(trainer._logs["advantages"])))


def trl_gradients(
    model: nn.Module, groups: Sequence[Group], *, micro_batches: int = 1, sampler: bool = False, **settings
) -> dict[str, Tensor]:
    """Gradient of every weight after one step on scored groups, TRL's forward pass included."""
    rows = [(group, completion) for group in groups for completion in group.completions]
    rollout = {
        "prompt_ids": [list(group.prompt_ids) for group, _ in rows],
        "completion_ids": [list(completion.token_ids) for _, completion in rows],
        "logprobs": [list(completion.logprobs) for _, completion in rows] if sampler else None,
    }
    trainer = _trainer(
        _Grpo,
        model,
        rollout,
        torch.tensor([[score.reward] for group in groups for score in group.scores]),
        num_generations=len(rows) // len(groups),
        per_device_train_batch_size=len(rows) // micro_batches,
        gradient_accumulation_steps=micro_batches,
        **settings,
    )
    trainer.use_vllm, trainer._last_loaded_step = sampler, trainer.state.global_step
    _run(trainer, len(rows), micro_batches)
    return {name: weight.grad for name, weight in trainer.model.named_parameters()}


def _trainer(kind: type[GRPOTrainer], model: nn.Module, rollout: dict, rewards: Tensor, **settings) -> GRPOTrainer:
    with TemporaryDirectory() as folder:
        config = GMPOConfig if issubclass(kind, GMPOTrainer) else GRPOConfig
        return kind(
            model=model,
            reward_funcs=[_reward(column) for column in rewards.T.tolist()],
            args=config(output_dir=folder, use_cpu=True, bf16=False, report_to="none", **settings),
            train_dataset=PROMPTS,
            processing_class=_tokenizer(model.config.vocab_size),
            rollout_func=lambda prompts, trainer: rollout,
        )


def _run(trainer: GRPOTrainer, rows: int, steps: int) -> float:
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    prompts = [{"prompt": "word"}] * rows
    return sum(trainer.training_step(trainer.model, prompts, None).item() for _ in range(steps))


def _reward(column: list[float]):
    return lambda completions, **_: [None if value != value else value for value in column]


def _rollout(case: Case, sampler: bool) -> dict[str, list | None]:
    """The rollout that TRL receives. A completion that does not end in END counts as truncated."""
    lengths = case.lengths.tolist()
    last = [WORD if truncated else END for truncated in case.truncated.tolist()]
    return {
        "prompt_ids": [[FIRST_ROW + row] for row in range(len(case))],
        "completion_ids": [[WORD] * (length - 1) + [end] for length, end in zip(lengths, last, strict=True)],
        "logprobs": [row[:n].tolist() for row, n in zip(case.rollout_logp, lengths, strict=True)] if sampler else None,
        "env_mask": [row[:n].int().tolist() for row, n in zip(case.mask, lengths, strict=True)],
    }


@cache
def _tokenizer(words: int) -> PreTrainedTokenizerFast:
    vocabulary = ["<pad>", "<end>", *(f"word{number}" for number in range(2, words))]
    model = models.WordLevel({word: number for number, word in enumerate(vocabulary)}, unk_token="word2")
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model), pad_token="<pad>", eos_token="<end>")


@cache
def _model(words: int) -> Qwen3ForCausalLM:
    """The trainer wants one; it is never run."""
    return small_model(words, width=4, layers=1)


def small_model(words: int, width: int, layers: int) -> Qwen3ForCausalLM:
    """Random weights."""
    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=words,
            hidden_size=width,
            intermediate_size=width,
            num_hidden_layers=layers,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=width // 2,
            initializer_range=0.3,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=END,
            pad_token_id=PAD,
        )
    )
