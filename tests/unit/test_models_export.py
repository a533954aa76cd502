"""GGUF files of one's own: what llama.cpp loads gives what the checkpoint gives, or is not written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGUFReader
from gguf_files import write_gguf
from tokenizers import Regex, pre_tokenizers
from transformers import (
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

from components.errors import InputError
from components.models import convert as converting
from components.models import export as exporting
from components.models.convert import convert, dequantised
from components.models.export import export_gguf
from components.models.header import read_header
from components.policy import Policy
from components.policy.tiny import build_tokenizer

SIZES: dict[str, Any] = dict(
    vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None, pad_token_id=0, eos_token_id=1,
)  # fmt: skip


def saved(folder: Path, model: Callable[[Any], PreTrainedModel], config: PretrainedConfig, cut: Any = None) -> Path:
    """A checkpoint; ``cut`` is how its tokenizer cuts text, if not as that of the tiny model."""
    tokenizer: Any = build_tokenizer(["It is 12, and 7 more."], 320, 64)
    if cut is not None:
        tokenizer.backend_tokenizer.pre_tokenizer = cut
    torch.manual_seed(0)
    folder.mkdir()
    Policy(model(config).eval(), tokenizer).save(folder)
    return folder


def text(file: Path, key: str) -> str:
    field = GGUFReader(file).fields[key]
    return bytes(field.parts[field.data[0]]).decode()


def test_a_llama_that_came_from_a_gguf_file_goes_back_into_the_same_tensors(tmp_path: Path) -> None:
    written = write_gguf(tmp_path / "from.gguf", quantised=None)
    convert(tmp_path / "from.gguf", tmp_path / "model", lambda line: None)
    export_gguf(tmp_path / "model", tmp_path / "to.gguf", "mine")
    found = {one.name: one.data for one in GGUFReader(tmp_path / "to.gguf").tensors}
    assert found.keys() == written.keys()
    for name, weight in written.items():
        np.testing.assert_array_equal(found[name], weight, err_msg=name)
    assert text(tmp_path / "to.gguf", "tokenizer.ggml.pre") == "gpt-2"


def test_biases_and_a_head_of_its_own_come_along(tmp_path: Path) -> None:
    split = pre_tokenizers.Split(Regex(GGUF_PRE_TOKENIZER_SPLITS["qwen2"]), behavior="isolated")
    cut = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    config = Qwen2Config(**SIZES, tie_word_embeddings=False)
    folder = saved(tmp_path / "model", Qwen2ForCausalLM, config, cut)
    export_gguf(folder, tmp_path / "to.gguf", "mine")
    names = {one.name for one in GGUFReader(tmp_path / "to.gguf").tensors}
    assert {"output.weight", "blk.1.attn_q.bias"} <= names
    assert text(tmp_path / "to.gguf", "tokenizer.ggml.pre") == "qwen2"


@pytest.mark.parametrize("behaviors", [("isolated", "isolated"), ("removed",)], ids=["cut twice", "loses text"])
def test_a_known_pattern_that_is_used_in_another_way_is_refused(tmp_path: Path, behaviors: tuple[str, ...]) -> None:
    pattern = Regex(GGUF_PRE_TOKENIZER_SPLITS["qwen2"])
    splits = [pre_tokenizers.Split(pattern, behavior=behavior) for behavior in behaviors]
    cut = pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    folder = saved(tmp_path / "model", Qwen3ForCausalLM, Qwen3Config(**SIZES, head_dim=32), cut)
    with pytest.raises(InputError, match="this tokenizer"):
        export_gguf(folder, tmp_path / "to.gguf", "mine")


def test_half_precision_stays_half(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", lambda config: Qwen2ForCausalLM(config).bfloat16(), Qwen2Config(**SIZES))
    export_gguf(folder, tmp_path / "to.gguf", "mine")
    assert read_header(tmp_path / "to.gguf").types == {"BF16", "F32"}


def test_what_is_read_back_takes_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path / "model", Qwen2ForCausalLM, Qwen2Config(**SIZES))
    monkeypatch.setattr(converting.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    export_gguf(folder, tmp_path / "to.gguf", "mine")
    assert (tmp_path / "to.gguf").exists()


def test_a_file_that_gives_something_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path / "model", Qwen2ForCausalLM, Qwen2Config(**SIZES))

    def off(file: Path, header: Any) -> Policy:
        found = dequantised(file, header)
        with torch.no_grad():
            next(found.model.parameters()).add_(0.01)
        return found

    monkeypatch.setattr(exporting, "dequantised", off)
    with pytest.raises(InputError, match="does not give"):
        export_gguf(folder, tmp_path / "to.gguf", "mine")


def scaled(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    (folder / "config.json").write_text(json.dumps(config))


def test_what_ggml_stores_in_a_way_not_known_here_is_refused(tmp_path: Path) -> None:
    experts = Qwen3MoeConfig(**SIZES, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
    odd = saved(tmp_path / "odd", Qwen3ForCausalLM, Qwen3Config(**SIZES, head_dim=32), pre_tokenizers.Whitespace())
    rope = saved(tmp_path / "rope", Qwen2ForCausalLM, Qwen2Config(**SIZES))
    scaled(rope)
    for folder, said in (
        (saved(tmp_path / "moe", Qwen3MoeForCausalLM, experts), "architecture 'qwen3_moe'"),
        (odd, "this tokenizer"),
        (rope, "scaled positions"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            export_gguf(folder, tmp_path / "to.gguf", "mine")
        assert "safetensors" in (caught.value.how or "")
