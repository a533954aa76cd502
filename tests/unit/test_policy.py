"""The policy: prompts and answers as tokens, log-probabilities, safetensors in and out, and what is not loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from factories import TINY, gpt2, policy, prompts
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from components.config.policy import CheckpointModel, PolicySettings
from components.errors import InputError
from components.files import manifest
from components.policy import Policy, load_policy, response_logprobs
from components.policy.padding import pad
from components.policy.tiny import CHAT_TEMPLATE, build_model, build_tokenizer

LOAD = PolicySettings(model=CheckpointModel(kind="checkpoint", path=Path("unused")))


@pytest.fixture(scope="module")
def micro() -> Policy:
    return policy()


@pytest.fixture
def checkpoint(micro: Policy, tmp_path: Path) -> Path:
    micro.save(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


# Tokens


def test_a_chat_prompt_ends_where_the_assistant_speaks(micro):
    ids = micro.encode_prompt("12+3=")
    assert micro.tokenizer.decode(ids) == "<|user|>12+3=<|assistant|>"


def test_the_instruction_stands_before_the_question_and_plain_text_has_no_markers(micro):
    plain = Policy(micro.model, micro.tokenizer, chat=False, instruction="Add: ")
    assert micro.tokenizer.decode(plain.encode_prompt("1+1=")) == "Add: 1+1="


def test_an_answer_ends_with_the_end_token_and_decodes_without_it(micro):
    ids = micro.encode_answer("15#15")
    assert ids[-1] == micro.eos_id
    assert micro.decode(ids) == "15#15"


def test_every_digit_is_one_token_of_its_own(micro):
    assert len(micro.encode_answer("1234567890")) == 11


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
@settings(deadline=None)
def test_any_text_survives_the_tokenizer(text):
    micro = policy()
    assert micro.tokenizer.decode(micro.encode_answer(text)[:-1]) == text


def test_the_tokenizer_depends_on_its_texts_alone():
    texts = [p.solution for p in prompts(30)]
    one, two = (build_tokenizer(texts, 300, 64).get_vocab() for _ in range(2))
    assert one == two
    assert len(one) <= 300


# The tiny model


def test_the_tiny_model_depends_on_the_seed_and_leaves_the_global_generator_alone(micro):
    before = torch.random.get_rng_state()
    one, two, other = (build_model(TINY, micro.tokenizer, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_tied_weights_count_once(micro):
    assert micro.parameters == sum(p.numel() for p in micro.weights().values())
    assert "lm_head.weight" not in micro.weights()


# Copies and weights


def test_a_frozen_copy_is_independent_and_has_no_gradients():
    original = policy()
    copy = original.frozen_copy()
    with torch.no_grad():
        for parameter in original.model.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(w, v) for w, v in zip(copy.weights().values(), policy().weights().values(), strict=True))
    assert not any(p.requires_grad for p in copy.model.parameters())


def test_loaded_weights_are_copied_in():
    target, source = policy(), policy()
    with torch.no_grad():
        for parameter in source.model.parameters():
            parameter.mul_(2.0)
    target.load_weights(source.weights())
    assert all(torch.equal(w, source.weights()[name]) for name, w in target.weights().items())


@pytest.mark.parametrize("change", [lambda w: w.popitem(), lambda w: w.update(foreign=torch.zeros(1))])
def test_a_partial_or_foreign_set_of_weights_is_refused_and_nothing_changes(change):
    target, weights = policy(), {name: w + 1 for name, w in policy().weights().items()}
    change(weights)
    with pytest.raises(ValueError, match="do not fit"):
        target.load_weights(weights)
    assert all(torch.equal(w, policy().weights()[name]) for name, w in target.weights().items())


# Log-probabilities


def scored(micro: Policy, rows: list[tuple[tuple[int, ...], tuple[int, ...]]], temperature: float = 1.0):
    padded = pad([p for p, _ in rows], [r for _, r in rows], micro.pad_id)
    width = padded.response_mask.shape[1]
    with torch.no_grad():
        return response_logprobs(micro.model, padded.input_ids, padded.attention_mask, width, temperature)


ROWS = [((2, 30, 3), (31, 1)), ((2, 30, 31, 32, 33, 3), (34, 35, 36, 1)), ((2, 3), (40,))]


@pytest.mark.parametrize("build", [policy, gpt2])
def test_padding_on_either_side_changes_nothing(build):
    micro = build()
    together = scored(micro, ROWS)
    for row, (prompt, response) in enumerate(ROWS):
        alone = scored(micro, [(prompt, response)])
        for found, expected in zip(together[:2], alone[:2], strict=True):
            assert torch.allclose(found[row, : len(response)], expected[0], atol=1e-5)


def test_prompts_are_padded_on_the_left_and_responses_on_the_right():
    padded = pad([(5,), (6, 7)], [(8, 9), (10,)], pad_id=0)
    assert padded.input_ids.tolist() == [[0, 5, 8, 9], [6, 7, 10, 0]]
    assert padded.attention_mask.tolist() == [[0, 1, 1, 1], [1, 1, 1, 0]]
    assert padded.response_mask.tolist() == [[True, True], [True, False]]


def test_prompts_alone_have_no_response_columns():
    assert pad([(5,), (6, 7)], [(), ()], pad_id=0).response_mask.shape == (2, 0)


# Saving and loading


def test_a_saved_policy_loads_bit_for_bit(micro, checkpoint):
    loaded = load_policy(checkpoint, LOAD)
    assert loaded.weights().keys() == micro.weights().keys()
    assert all(torch.equal(w, micro.weights()[name]) for name, w in loaded.weights().items())
    assert loaded.encode_prompt("12+3=") == micro.encode_prompt("12+3=")
    assert loaded.encode_answer("15") == micro.encode_answer("15")


def test_saving_what_was_loaded_gives_the_same_weights_to_the_byte(checkpoint, tmp_path):
    load_policy(checkpoint, LOAD).save(tmp_path / "again")
    load_policy(tmp_path / "again", LOAD).save(tmp_path / "once more")
    assert manifest(tmp_path / "once more") == manifest(tmp_path / "again")
    assert manifest(tmp_path / "again")["model.safetensors"] == manifest(checkpoint)["model.safetensors"]


def test_a_checkpoint_can_be_loaded_in_half_the_precision(checkpoint):
    loaded = load_policy(checkpoint, LOAD.model_copy(update={"dtype": "bfloat16"}))
    assert {w.dtype for w in loaded.weights().values()} == {torch.bfloat16}


def edit(name: str, **changes: Any) -> Callable[[Path], object]:
    """Change keys of a JSON file of the checkpoint; None removes one."""

    def change(path: Path) -> None:
        value = {**json.loads((path / name).read_text()), **changes}
        (path / name).write_text(json.dumps({key: v for key, v in value.items() if v is not None}))

    return change


def edit_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    def save(path: Path) -> None:
        weights = load_file(path / "model.safetensors")
        change(weights)
        save_file(weights, path / "model.safetensors", {"format": "pt"})

    return save


OTHER_END = CHAT_TEMPLATE.replace("<|end|>", "<|pad|>")
Q_PROJ = "model.layers.0.self_attn.q_proj.weight"


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda path: (path / "model.safetensors").rename(path / "pytorch_model.bin"), "pickle"),
        (lambda path: (path / "model.safetensors").unlink(), "no safetensors"),
        (lambda path: (path / "tokenizer.json").unlink(), "no tokenizer"),
        (lambda path: (path / "chat_template.jinja").unlink(), "no chat template"),
        (edit("tokenizer_config.json", eos_token=None), "no end-of-sequence token"),
        (lambda path: (path / "chat_template.jinja").write_text(OTHER_END), r"ends an answer with '<\|pad\|>'"),
        (edit("config.json", model_type="no-such-architecture"), "no-such-architecture"),
        (edit("config.json", auto_map={"AutoModel": "evil.Model"}), "run code"),
        (edit("config.json", model_type="t5"), "cannot load"),
        (edit_weights(lambda w: w.pop(Q_PROJ)), "q_proj"),
        (edit_weights(lambda w: w.update({Q_PROJ: w[Q_PROJ][:3].clone()})), "q_proj"),
    ],
)
def test_what_is_not_a_whole_safe_checkpoint_is_refused(checkpoint, damage, problem):
    damage(checkpoint)
    with pytest.raises(InputError, match=problem) as caught:
        load_policy(checkpoint, LOAD)
    assert str(checkpoint) in str(caught.value.where)


def test_plain_text_needs_no_chat_template(checkpoint):
    (checkpoint / "chat_template.jinja").unlink()
    loaded = load_policy(checkpoint, LOAD.model_copy(update={"chat": False, "instruction": "Q: "}))
    assert loaded.tokenizer.decode(loaded.encode_prompt("1+1=")) == "Q: 1+1="


def test_plain_text_that_the_tokenizer_ends_is_refused(checkpoint):
    tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
    tokenizer.post_processor = TemplateProcessing(single="$A <|end|>", special_tokens=[("<|end|>", 1)])
    tokenizer.save(str(checkpoint / "tokenizer.json"))
    load_policy(checkpoint, LOAD)  # a chat template ends what it renders by itself
    with pytest.raises(InputError, match="puts its end token behind every text"):
        load_policy(checkpoint, LOAD.model_copy(update={"chat": False}))


def test_a_tokenizer_without_padding_pads_with_its_end_token(checkpoint):
    edit("tokenizer_config.json", pad_token=None)(checkpoint)
    loaded = load_policy(checkpoint, LOAD)
    assert loaded.pad_id == loaded.eos_id
