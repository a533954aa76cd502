"""Tiny GGUF files that the tests write, and a wheel around one of them."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from transformers.convert_slow_tokenizer import bytes_to_unicode

HIDDEN, HEADS, KV_HEADS, MLP = 64, 4, 2, 128
SPECIAL = ["<|start|>", "<|end|>", "<|pad|>"]
TOKENS = [*SPECIAL, *sorted(bytes_to_unicode().values()), "Ġa"]
TEMPLATE = "{% for message in messages %}<|start|>{{ message['content'] }}{% endfor %}"
QUANTISED = GGMLQuantizationType.Q8_0
Weights = dict[str, np.ndarray[Any, np.dtype[np.float32]]]


def weights(seed: int = 0) -> Weights:
    """One layer of a Llama with tied embeddings, by the names of ggml."""
    random = np.random.default_rng(seed)
    kv = HIDDEN // HEADS * KV_HEADS
    shapes = {
        "token_embd.weight": (len(TOKENS), HIDDEN),
        "blk.0.attn_norm.weight": (HIDDEN,),
        "blk.0.attn_q.weight": (HIDDEN, HIDDEN),
        "blk.0.attn_k.weight": (kv, HIDDEN),
        "blk.0.attn_v.weight": (kv, HIDDEN),
        "blk.0.attn_output.weight": (HIDDEN, HIDDEN),
        "blk.0.ffn_norm.weight": (HIDDEN,),
        "blk.0.ffn_gate.weight": (MLP, HIDDEN),
        "blk.0.ffn_up.weight": (MLP, HIDDEN),
        "blk.0.ffn_down.weight": (HIDDEN, MLP),
        "output_norm.weight": (HIDDEN,),
    }
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def write_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    layers: int = 1,
    template: str | None = TEMPLATE,
    quantised: GGMLQuantizationType | None = QUANTISED,
    leave_out: str = "",
    eos: bool = True,
) -> Weights:
    """Write a model with `weights`, matrices quantised; returns what a reader has to get, by ggml's names."""
    writer = GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(MLP)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([TokenType.CONTROL] * len(SPECIAL) + [TokenType.NORMAL] * (len(TOKENS) - len(SPECIAL)))
    writer.add_token_merges(["Ġ a"])
    writer.add_bos_token_id(0)
    if eos:
        writer.add_eos_token_id(1)
    writer.add_pad_token_id(2)
    if template is not None:
        writer.add_chat_template(template)
    expected = {}
    for name, value in weights().items():
        if name == leave_out:
            continue
        if quantised is None or value.ndim == 1:
            writer.add_tensor(name, value)
            expected[name] = value
        else:
            blocks = gguf.quantize(value, quantised)
            writer.add_tensor(name, blocks, raw_dtype=quantised)
            expected[name] = gguf.dequantize(blocks, quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


def write_wheel(path: Path, files: dict[str, bytes]) -> str:
    """A wheel with these files; returns its digest."""
    name, version = path.name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    metadata = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: absent-package\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in {**metadata, **files}.items():
            archive.writestr(inner, data)
    return hashlib.sha256(path.read_bytes()).hexdigest()
