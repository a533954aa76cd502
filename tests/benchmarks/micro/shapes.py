"""Models with random weights in the shape of the demo's, and larger ones, and a tokenizer for any vocabulary; the real
model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from components.config.policy import PolicySettings
from components.policy import Policy, load_policy
from tests.benchmarks.micro.cases import Size
from tests.benchmarks.real.model import MODEL

PAD, END, FIRST = 0, 1, 2
"""Token ids; words begin at ``FIRST``."""


@dataclass(frozen=True)
class Shape:
    """Of a Qwen3 without its vocabulary."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int


SHAPES: dict[Size, Shape] = {
    "toy": Shape(32, 1, 2, 1, 16, 64),
    "demo": Shape(128, 3, 4, 2, 32, 384),
    "25M": Shape(512, 8, 8, 4, 64, 1536),
}


def policy_of(size: Size, vocabulary: int, *, endless: bool = False) -> Policy:
    """Weights in fp32, random but for the real model. ``endless``: its end token is none of the model's, so no row
    ends by itself."""
    if size == "real":
        return real_policy(endless=endless)
    shape = SHAPES[size]
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=PAD,
    )
    return Policy(Qwen3ForCausalLM(config).float().eval(), tokenizer_of(vocabulary, endless=endless), chat=False)


def real_policy(*, endless: bool = False) -> Policy:
    policy = load_policy(MODEL, PolicySettings())
    if endless:
        policy.tokenizer.add_special_tokens({"eos_token": "<none of the model's>"})
    return policy


def tokenizer_of(vocabulary: int, *, endless: bool = False) -> PreTrainedTokenizerFast:
    """One word for every token of a model."""
    words = ["<pad>", "word1" if endless else "<end>", *(f"word{number}" for number in range(FIRST, vocabulary))]
    words += ["<end>"] if endless else []
    known = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="word2"))
    known.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=known, pad_token="<pad>", eos_token="<end>", padding_side="left")
