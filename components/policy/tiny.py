"""The smallest real policies: a Qwen3 or Qwen3-MoE with random weights, and a tokenizer that keeps digits apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from components.config.policy import TinyModel

PAD, END, USER, ASSISTANT = "<|pad|>", "<|end|>", "<|user|>", "<|assistant|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def build_tokenizer(texts: Iterable[str], vocab_size: int, max_positions: int) -> PreTrainedTokenizerBase:
    """Train a byte-level BPE on ``texts``. Single digits stay single tokens, so that numbers have one spelling."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, END, USER, ASSISTANT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        model_max_length=max_positions,
        clean_up_tokenization_spaces=False,
    )


def build_model(settings: TinyModel, tokenizer: PreTrainedTokenizerBase, seed: int) -> PreTrainedModel:
    """A randomly initialised Qwen3, or Qwen3-MoE where the settings have experts (tied embeddings, fp32)."""
    config = model_config(settings, len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(config, Qwen3MoeConfig):
            return Qwen3MoeForCausalLM(config).float()
        return Qwen3ForCausalLM(config).float()


def model_config(
    settings: TinyModel, vocabulary: int, eos_id: int | None, pad_id: int | None
) -> Qwen3Config | Qwen3MoeConfig:
    """The configuration of that model for a tokenizer with so many tokens."""
    shape: dict[str, Any] = dict(
        vocab_size=vocabulary,
        hidden_size=settings.hidden_size,
        intermediate_size=settings.intermediate_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.kv_heads,
        head_dim=settings.head_dim,
        max_position_embeddings=settings.max_positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=eos_id,
        pad_token_id=pad_id,
    )
    if not settings.experts:
        return Qwen3Config(**shape)
    experts = dict(
        num_experts=settings.experts,
        num_experts_per_tok=settings.experts_per_token,
        moe_intermediate_size=settings.intermediate_size,
        norm_topk_prob=True,
    )
    return Qwen3MoeConfig(**shape, **experts)
