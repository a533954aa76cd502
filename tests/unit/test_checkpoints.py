"""What a checkpoint folder may hold: nothing that can run code, nothing missing."""

import json
import os
import pickle
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from components.checkpoints.checks import check_checkpoint, check_proposed, check_stored
from components.checkpoints.names import check_names
from components.errors import InputError
from components.files import manifest


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint"
    path.mkdir()
    save_file({"weight": np.zeros((2, 2), dtype=np.float32)}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps({"model_type": "qwen3", "nested": [{"a": 1}]}))
    (path / "tokenizer.json").write_text(json.dumps({"vocab": {"auto_map": 3}}))
    return path


def edit_config(key: str, value: object) -> Callable[[Path], object]:
    return lambda path: (path / "config.json").write_text(json.dumps({"model_type": "x", key: value}))


def add(name: str, data: bytes = b"") -> Callable[[Path], object]:
    def write(path: Path) -> None:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(data)

    return write


def shard(path: Path, name: str, named: str) -> None:
    """Weights in a shard, and an index that may call it otherwise."""
    (path / name).parent.mkdir(exist_ok=True)
    save_file({"w": np.zeros(1)}, path / name)
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": named}}))


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def with_header(header: dict[str, Any], data: bytes) -> Callable[[Path], object]:
    text = json.dumps(header).encode()
    return add("model.safetensors", len(text).to_bytes(8, "little") + text + data)


def tensor(start: int, end: int) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [(end - start) // 4], "data_offsets": [start, end]}


PROTOCOL_0 = b"cos\nsystem\n(S'id'\ntR."
INST = b"(S'id'\nios\nsystem\n."
"""Pickles without a beginning that says so."""


def test_a_whole_checkpoint_passes_and_gives_its_digest(checkpoint: Path) -> None:
    assert check_checkpoint(checkpoint) == manifest(checkpoint)


def test_a_word_of_the_vocabulary_is_not_a_configuration_key(checkpoint: Path) -> None:
    assert "auto_map" in (checkpoint / "tokenizer.json").read_text()
    check_checkpoint(checkpoint)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        *((add(f"pytorch_model{suffix}"), "pickle") for suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".BIN")),
        (add("sub/optimizer.pt"), "pickle"),
        (add("extra.json", pickle.dumps({"a": 1})), "pickle under another name"),
        (add("tokenizer.model", b"PK\x03\x04rest"), "pickle under another name"),
        (add("modeling_custom.py"), "must not bring code"),
        (add("native.so"), "must not bring code"),
        (add("weights.dat", pickle.dumps({"a": 1})), "pickle under another name"),
        (edit_config("auto_map", {"AutoModel": "modeling_custom.Model"}), "auto_map"),
        (edit_config("text_config", [{"auto_map": {}}]), "auto_map"),
        (edit_config("trust_remote_code", True), "trust_remote_code"),
        (add("tokenizer_config.json", b'{"auto_map": {}}'), "auto_map"),
        (add("config.json", b"[]"), "expected a JSON object"),
        (add("config.json", b"{"), "not valid JSON"),
        (add("config.json", b"{}"), "which architecture"),
        (lambda path: (path / "config.json").unlink(), "file not found"),
        (lambda path: (path / "tokenizer.json").unlink(), "no tokenizer"),
        (lambda path: (path / "model.safetensors").unlink(), "no safetensors"),
        (lambda path: (path / "link.json").symlink_to(path / "config.json"), "symbolic link"),
        (lambda path: (path / "sub").symlink_to(path.parent), "symbolic link"),
        (add("model.safetensors", b""), "not a safetensors file"),
        (add("model.safetensors", pickle.dumps([1] * 100)), "not a safetensors file"),
        (add("model.safetensors", (2**62).to_bytes(8, "little") + b"{}"), "not a safetensors file"),
        (lambda path: truncate(path / "model.safetensors"), "not a safetensors file"),
        (add("model.safetensors.index.json", b'{"weight_map": {"w": "model-2.safetensors"}}'), "which is not there"),
        (add("model.safetensors.index.json", b'{"weight_map": {"w": "model.safetensors"}}'), "which is not there"),
        (add("model.safetensors.index.json", b"{}"), "no weight_map"),
        (lambda path: shard(path, "sub/shard.safetensors", "shard.safetensors"), "which is not there"),
        (edit_config("attn_implementation", "someone/kernel"), "attn_implementation asks"),
        (edit_config("attn_implementation", "paged|someone/kernel@main:forward"), "attn_implementation asks"),
        (edit_config("attn_implementation", {"text_config": {"": "someone/kernel"}}), "attn_implementation asks"),
        (edit_config("attn_implementation", ["someone/kernel"]), "attn_implementation asks"),
        (edit_config("text_config", {"_attn_implementation": "someone/kernel"}), "_attn_implementation asks"),
        # Not what its name says.
        (add("notes.txt", PROTOCOL_0), "pickle under another name"),
        (add("notes.md", INST), "pickle under another name"),
        (add("LICENSE", PROTOCOL_0 + b"and more text"), "pickle under another name"),
        (add("vocab.txt", b"N0" * 2**19 + PROTOCOL_0), "pickle under another name"),
        (add("vocab.txt", b"V" + b"a" * 2**20 + b"\n0" + PROTOCOL_0), "pickle under another name"),
        (add("chat_template.jinja", pickle.dumps({"a": 1}, protocol=0) + b"\x00"), "not plain text"),
        (add("tool.json", b"#!/bin/sh\nid\n"), "a script under another name"),
        (add("LICENSE", b"\x7fELF\x02"), "a program under another name"),
        (add("README.md", b"MZ\x90"), "a program under another name"),
        (add("run.sh", b"id"), "must not bring code"),
        (add("weights.gguf", b"GGUF"), "no checkpoint needs"),
        (add("model.onnx", b"\x08\x07"), "no checkpoint needs"),
        (add("array.npy", b"\x93NUMPY"), "no checkpoint needs"),
        (add("arrays.npz", b"PK\x03\x04"), "pickle under another name"),
        (add("model.h5", b"\x89HDF\r\n"), "no checkpoint needs"),
        (add("flax_model.msgpack", b"\x81"), "no checkpoint needs"),
        (add("weights", b"text"), "no checkpoint needs"),
        (add("archive.tar.gz", b"\x1f\x8b"), "no checkpoint needs"),
        (add("tokenizer.model", b"not protobuf"), "not a SentencePiece model"),
        (add("tokenizer.model", b""), "not a SentencePiece model"),
        (add("tokenizer.model", b"\x0a\xff\xff\xff\xff\x0f"), "not a SentencePiece model"),
        (add("vocab.json", b"{"), "not valid JSON"),
        (add("merges.txt", b"\xff\xfe"), "not plain text"),
        (add("merges.txt", b"a\x00b"), "not plain text"),
        (add("picture.png", b"text"), "not the picture"),
        (add("tokenizer_config.json", b'{"chat_template": {"a": 1}}'), "chat_template is not plain text"),
        (add("tokenizer_config.json", b'{"chat_template": [{"name": "x", "template": 1}]}'), "not plain text"),
        (add("chat_template.json", b'{"chat_template": 7}'), "chat_template is not plain text"),
        (add("sub/Config.JSON", b'{"auto_map": {}}'), "auto_map"),
        # Safetensors with gaps, overlaps, trailing bytes or wrong shapes.
        (with_header({"a": tensor(0, 8)}, b"\0" * 9), "not a safetensors file"),
        (with_header({"a": tensor(0, 8), "b": tensor(4, 12)}, b"\0" * 12), "not a safetensors file"),
        (with_header({"a": tensor(0, 8), "b": tensor(12, 16)}, b"\0" * 16), "not a safetensors file"),
        (with_header({"a": {**tensor(0, 8), "shape": [3]}}, b"\0" * 8), "not a safetensors file"),
        (with_header({"a": {**tensor(0, 8), "dtype": "OBJECT"}}, b"\0" * 8), "not a safetensors file"),
        (with_header({"a": tensor(0, 8), "__metadata__": {"a": 1}}, b"\0" * 8), "not a safetensors file"),
    ],
)
def test_a_checkpoint_that_is_not_whole_or_not_harmless_is_refused(
    checkpoint: Path, damage: Callable[[Path], object], problem: str
) -> None:
    damage(checkpoint)
    with pytest.raises(InputError, match=problem):
        check_checkpoint(checkpoint)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder not found"):
        check_checkpoint(tmp_path / "nothing")


# --- what is harmless

PIECE = b"\x0a\x03<s>\x15\x00\x00\x00\x00\x18\x03"


def index(path: Path) -> None:
    (path / "model.safetensors.index.json").write_text('{"weight_map": {"weight": "model.safetensors"}}')


@pytest.mark.parametrize(
    "more",
    [
        *(add(name, b"text") for name in ("LICENSE", "LICENSE.txt", "NOTICE", "README.md", ".gitattributes")),
        *(add(name, b"text") for name in ("chat_template.jinja", "merges.txt")),
        add("figure.png", b"\x89PNG\r\n\x1a\n rest"),
        add(".cache/model.safetensors.metadata", b"0123\n"),  # what a download leaves
        index,
        lambda path: shard(path, "sub/shard.safetensors", "sub/shard.safetensors"),
        add("tokenizer.model", (b"\x0a" + bytes([len(PIECE)]) + PIECE) * 3 + b"\x12\x02\x08\x01"),
        add("tokenizer_config.json", b'{"chat_template": [{"name": "default", "template": "{{ x }}"}]}'),
        # An attention that transformers brings itself.
        *(edit_config("attn_implementation", name) for name in ("sdpa", "flash_attention_2", "paged|eager", None)),
        edit_config("attn_implementation", {"": "eager", "text_config": "sdpa"}),
        # Text that begins as a pickle could, and long text.
        *(add("notes.txt", text) for text in (b"", b".", b"N.", b"import os\n", b"Read the manual. R.")),
        *(add("notes.txt", text) for text in (b"change log\nof things\n", b"introduction\nby somebody\n")),
        add("notes.txt", b"(introduction)\nby somebody\n(the end)"),
        *(add("notes.txt", text) for text in (b"a line of text\n" * 2**17, b"N0" * 2**19)),
        add("notes.txt", b"[" + b"1, " * 2**19 + b"1]"),
    ],
)
def test_what_usually_belongs_to_a_checkpoint_is_harmless(checkpoint: Path, more: Callable[[Path], object]) -> None:
    more(checkpoint)
    check_checkpoint(checkpoint)


# --- names and kinds of entries


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a\x1b[2Jb.txt", "does not show"),
        ("a‮txt.json", "does not show"),
        ("back\\slash.txt", "backslash"),
        ("C:.txt", "colon"),
        ("dots..txt/x.txt", None),
        ("trailing /x.txt", "ends with a space or a dot"),
        ("README.MD", "are one on other systems"),
    ],
)
def test_names_are_the_same_on_every_system(checkpoint: Path, name: str, problem: str | None) -> None:
    add("README.md", b"text")(checkpoint)
    add(name, b"text")(checkpoint)
    if problem is None:
        check_checkpoint(checkpoint)
    else:
        with pytest.raises(InputError, match=problem):
            check_checkpoint(checkpoint)


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../../b", "", "a//b", "./a", "x" * 1025, "\ud800"])
def test_a_name_that_leads_elsewhere_is_refused_wherever_it_comes_from(name: str) -> None:
    with pytest.raises(InputError):
        check_names([name], "a manifest")


def test_letters_with_an_accent_are_one_name_however_they_are_encoded() -> None:
    with pytest.raises(InputError, match="are one on other systems"):
        check_names(["caf\u00e9.txt", "cafe\u0301.txt"], "a manifest")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: socket.socket(socket.AF_UNIX).bind(str(path))])
def test_what_is_neither_file_nor_folder_is_refused_and_not_opened(
    checkpoint: Path, make: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkpoint)
    make(Path("odd.json"))
    with pytest.raises(InputError, match="neither a file nor a folder"):
        check_checkpoint(checkpoint)


# --- what goes into the registry, and what comes out


def test_an_executable_file_is_loaded_and_not_proposed(checkpoint: Path) -> None:
    (checkpoint / "config.json").chmod(0o755)
    check_checkpoint(checkpoint)
    with pytest.raises(InputError, match="executable"):
        check_proposed(checkpoint)


def test_an_empty_folder_is_loaded_and_not_proposed(checkpoint: Path) -> None:
    (checkpoint / "a" / "b").mkdir(parents=True)
    check_checkpoint(checkpoint)
    with pytest.raises(InputError, match="empty folder"):
        check_proposed(checkpoint)


def test_a_stored_file_that_can_be_changed_from_elsewhere_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    assert check_stored(checkpoint) == check_proposed(checkpoint)
    (tmp_path / "elsewhere").hardlink_to(checkpoint / "config.json")
    check_proposed(checkpoint)  # it is copied
    with pytest.raises(InputError, match="another name outside"):
        check_stored(checkpoint)


def test_two_names_of_one_file_inside_the_checkpoint_are_harmless(checkpoint: Path) -> None:
    (checkpoint / "README.md").write_text("text")
    (checkpoint / "NOTICE").hardlink_to(checkpoint / "README.md")
    check_stored(checkpoint)
