"""A checkpoint as one GGUF file, which llama.cpp and what is built on it load.

`gguf` writes the file and knows how ggml calls every tensor. What is written is read back as `convert` reads any file,
and has to give the same weights and logits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

from components.config.policy import CheckpointModel, PolicySettings
from components.errors import InputError
from components.files import os_errors, read_json
from components.models.convert import check_memory, dequantised, logits
from components.models.header import read_header, require_gguf
from components.policy import Policy, load_policy

if TYPE_CHECKING:
    from gguf import GGUFWriter

ELSE = "export it as safetensors, and convert it with the tools of llama.cpp if these know it"
Splits = tuple[str | None, bool, bool]
"""How text is cut before merging: a pattern, whether digits are cut apart first, whether GPT-2's pattern follows."""
PRE_TOKENIZERS: dict[Splits, str] = {
    (None, False, True): "gpt-2",
    (None, True, True): "smollm",
    **{(GGUF_PRE_TOKENIZER_SPLITS[name], False, False): name for name in ("qwen2", "llama-bpe", "gpt-4o", "tekken")},
}
"""What llama.cpp calls each way; with another one it would make other tokens of the same text."""


def _same(weight: Tensor, name: str, config: Any) -> Tensor:
    return weight


def _in_pairs(weight: Tensor, name: str, config: Any) -> Tensor:
    """Rows of query and key as llama.cpp rotates a Llama's: adjacent pairs, where transformers has halves."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(name.split(".")[-2])
    if heads is None:
        return weight
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)


Arrange = Callable[[Tensor, str, Any], Tensor]
ARCHITECTURES: dict[str, Arrange] = {"llama": _in_pairs, "qwen2": _same, "qwen3": _same}
"""``model_type`` of transformers that ggml calls the same -> how ggml has a weight, by its name for it."""


def export_gguf(checkpoint: Path, target: Path, title: str) -> None:
    """Write the file ``target``: fp32, or bf16 (norms fp32) where the checkpoint is bf16. Nothing is quantised.

    Args:
        title: name of the model in the file.

    Raises:
        InputError: an architecture, a tokenizer or a kind of attention that is not known here, not enough memory or
            disk, no `gguf`; or the file does not give what the checkpoint gives.
    """
    require_gguf()
    config = read_json(checkpoint / "config.json")
    kind = config.get("model_type")
    if kind not in ARCHITECTURES:
        what = f"no GGUF file can be written of the architecture {kind!r}, only of {', '.join(ARCHITECTURES)}"
        raise InputError(what, where=checkpoint / "config.json", how=ELSE)
    policy = load_policy(
        checkpoint, PolicySettings(model=CheckpointModel(kind="checkpoint", path=checkpoint), chat=False)
    )
    half = (config.get("dtype") or config.get("torch_dtype")) == "bfloat16"
    with os_errors("write", target):
        _write(policy, target, title, kind, half)
    _verify(policy, target)


def _write(policy: Policy, target: Path, title: str, kind: str, half: bool) -> None:
    from gguf import GGUFWriter

    writer = GGUFWriter(target, kind)
    writer.add_name(title)
    _add_shape(writer, policy.model.config)
    _add_tokenizer(writer, policy)
    for name, weight in _tensors(policy, kind).items():
        _add_tensor(writer, name, weight, half)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: GGUFWriter, config: Any) -> None:
    """The figures of the configuration, by ggml's names. Refused are scaled positions and windows, which it
    stores in ways of its own."""
    rope: Mapping[str, Any] = config.rope_parameters
    if rope.get("rope_type", "default") != "default" or getattr(config, "use_sliding_window", False):
        raise InputError("no GGUF file can be written of scaled positions or windows", where="config.json", how=ELSE)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)


def _add_tokenizer(writer: GGUFWriter, policy: Policy) -> None:
    from gguf import TokenType

    tokenizer: Any = policy.tokenizer
    stored = json.loads(tokenizer.backend_tokenizer.to_str())
    pre = _pre_tokenizer(stored)
    names = {number: token for token, number in tokenizer.get_vocab().items()}
    added = {one["id"]: one["special"] for one in stored["added_tokens"]}
    tokens, types = [], []
    for number in range(policy.embedded):  # an embedding may have more rows than there are tokens
        tokens.append(names.get(number, f"[PAD{number}]"))
        special = TokenType.CONTROL if added.get(number) else TokenType.USER_DEFINED
        types.append(TokenType.UNUSED if number not in names else special if number in added else TokenType.NORMAL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in stored["model"]["merges"]])
    writer.add_eos_token_id(policy.eos_id)
    writer.add_pad_token_id(policy.pad_id)
    if tokenizer.bos_token_id is not None:
        writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_add_bos_token(tokenizer.encode("a")[:1] == [tokenizer.bos_token_id])
    if isinstance(tokenizer.chat_template, str):
        writer.add_chat_template(tokenizer.chat_template)


def _pre_tokenizer(stored: Mapping[str, Any]) -> str:
    """What llama.cpp calls the way in which this tokenizer, a byte-level BPE, cuts text."""
    cut = stored["pre_tokenizer"] or {}
    cuts = [one for one in cut.get("pretokenizers", [cut]) if one]
    steps = {one["type"]: one for one in cuts}
    once = len(steps) == len(cuts)
    split, bytes_, digits = (steps.pop(name, None) for name in ("Split", "ByteLevel", "Digits"))
    pattern = split["pattern"].get("Regex") if split else None
    way = (pattern, bool(digits and digits["individual_digits"]), bool(bytes_ and bytes_["use_regex"]))
    whole = not split or (split["behavior"], split["invert"]) in (("Isolated", False), ("Removed", True))
    known = stored["model"]["type"] == "BPE" and bytes_ and not bytes_["add_prefix_space"] and not steps
    normalizer = (stored["normalizer"] or {}).get("type")
    if not (known and once and whole) or normalizer not in (None, "NFC") or way not in PRE_TOKENIZERS:
        what = "no GGUF file can be written of this tokenizer: llama.cpp has no name known here for how it cuts text"
        raise InputError(what, where="tokenizer.json", how=ELSE)
    return PRE_TOKENIZERS[way]


def _tensors(policy: Policy, kind: str) -> dict[str, Tensor]:
    """The weights by ggml's names, as it arranges them."""
    from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

    architecture = next(one for one, name in MODEL_ARCH_NAMES.items() if name == kind)
    config: Any = policy.model.config
    known, found = get_tensor_name_map(architecture, config.num_hidden_layers), {}
    for own, weight in policy.weights().items():
        if (name := known.get_name(own, try_suffixes=(".weight", ".bias"))) is None:
            raise InputError(f"ggml has no name for the tensor {own}", where=kind, how=ELSE)
        found[name] = ARCHITECTURES[kind](weight.cpu(), name, config)
    return found


def _add_tensor(writer: GGUFWriter, name: str, weight: Tensor, half: bool) -> None:
    from gguf import GGMLQuantizationType, quantize

    value: np.ndarray[Any, Any] = weight.float().contiguous().numpy()
    if half and value.ndim > 1:
        writer.add_tensor(name, quantize(value, GGMLQuantizationType.BF16), raw_dtype=GGMLQuantizationType.BF16)
    else:
        writer.add_tensor(name, value)


def _verify(policy: Policy, target: Path) -> None:
    header = read_header(target)
    check_memory(target, header)
    found = dequantised(target, header)
    own, read = policy.weights(), found.weights()
    with torch.no_grad():
        same = own.keys() == read.keys() and all(torch.equal(own[name].cpu(), read[name]) for name in own)
        same = same and torch.equal(logits(policy.model.cpu()), logits(found.model))
    if not same:
        what = "the GGUF file does not give the weights and logits of the checkpoint"
        raise InputError(what, where=target, how="this is a bug: report it with the config.json of the checkpoint")
