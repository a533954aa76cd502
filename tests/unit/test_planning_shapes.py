"""What a config.json says: counts that anybody can check by hand."""

from __future__ import annotations

import json

import pytest
from transformers import LlamaConfig, PretrainedConfig, Qwen2Config

from components.config.policy import LoraSettings, TinyModel
from components.errors import InputError
from components.planning.shapes import config_at, shape_of, tiny_config

LLAMA = {
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
QWEN_HALF = Qwen2Config(
    vocab_size=151936,
    hidden_size=896,
    num_hidden_layers=24,
    num_attention_heads=14,
    num_key_value_heads=2,
    intermediate_size=4864,
    tie_word_embeddings=True,
)
LAYER = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * 8192
"""Of Llama 3 70B: queries and output, keys and values, three matrices of the MLP, two norms."""


def test_llama_3_70b_has_70_553_706_496_parameters():
    shape = shape_of(LlamaConfig(**LLAMA, num_hidden_layers=80))
    assert shape.parameters == shape.trainable == 70_553_706_496 == 80 * LAYER + 2 * 128256 * 8192 + 8192
    assert (shape.layer, shape.outside, shape.tied, shape.layers) == (LAYER, 2 * 128256 * 8192 + 8192, False, 80)
    assert shape.kinds["embedding"] == shape.kinds["head"] == shape.table == 128256 * 8192
    assert shape.kinds["MLP"] == 80 * 3 * 8192 * 28672
    assert shape.kinds["norms"] == 161 * 8192


def test_a_tied_output_layer_is_counted_once():
    shape = shape_of(QWEN_HALF)
    assert (shape.parameters, shape.tied, "head" in shape.kinds) == (494_032_768, True, False)
    assert (shape.outside, shape.table) == (151936 * 896 + 896, 151936 * 896)


def test_an_adapter_has_rank_times_inputs_and_outputs_of_every_matrix():
    config = LlamaConfig(**LLAMA, num_hidden_layers=2)
    own = (2 * (8192 + 8192), 2 * (8192 + 1024), 3 * (8192 + 28672))
    shape = shape_of(config, LoraSettings(rank=16))
    assert shape.trainable == 2 * 16 * sum(own)
    assert shape.adapted == 2 * (LAYER - 2 * 8192)
    assert shape.parameters == shape_of(config).parameters
    two = shape_of(config, LoraSettings(rank=8, targets=("q_proj", "v_proj")))
    assert (two.trainable, two.adapted) == (2 * 8 * (2 * 8192 + 8192 + 1024), 2 * (8192 * 8192 + 8192 * 1024))


def test_an_adapter_of_any_size_takes_no_memory():
    shape = shape_of(LlamaConfig(**{**LLAMA, "hidden_size": 2**30}, num_hidden_layers=1), LoraSettings(rank=64))
    assert shape.trainable > 2**38


def test_experts_are_all_held_and_some_of_them_taken():
    shape = shape_of(tiny_config(TinyModel(layers=2, experts=4, experts_per_token=2)))
    assert shape.kinds["experts"] == 2 * 4 * 3 * 128 * 384
    assert shape.intermediate == 2 * 384
    assert shape.head_norms


def test_a_folder_and_a_file_are_read_alike(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(QWEN_HALF.to_dict()), encoding="utf-8")
    found = [config_at(path) for path in (tmp_path, tmp_path / "config.json")]
    assert [type(one) for one in found] == [Qwen2Config, Qwen2Config]


def test_an_adapter_that_does_not_fit_is_refused_as_in_a_run():
    with pytest.raises(InputError, match="no adapter can be put on this model"):
        shape_of(tiny_config(TinyModel()), LoraSettings(targets=("absent_proj",)))


@pytest.mark.parametrize("content", [None, "{", '{"model_type": "unheard-of"}'])
def test_what_is_no_configuration_is_refused_with_its_file(tmp_path, content):
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        config_at(tmp_path)
    assert (caught.value.where, bool(caught.value.how)) == (str(file), True)


def test_what_is_no_language_model_is_refused():
    with pytest.raises(InputError, match="transformers cannot build this model"):
        shape_of(PretrainedConfig())
