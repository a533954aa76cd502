"""Checkpoints that training is to start from: configuration, tokenizer, weights, and GGUF files to convert."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.cases import Case, End, chosen, sample, seeded
from tests.hostile.ground import CHECKPOINT, checkpoint, written
from tests.hostile.mutations import broken, json_texts, replacements, reshaped

SETTINGS = {"policy": {"model": {"kind": "checkpoint", "path": "model"}}, "sft": {"steps": 0}, "health": {"rules": {}}}
LOADS = ("transformers", "components.stages.sft", "transformers.models.qwen3.modeling_qwen3")
PLAN = ("flows.display.memory_plan", "transformers.models.qwen3.modeling_qwen3")
CONFIG = json.loads((CHECKPOINT / "config.json").read_text(encoding="utf-8"))
TOKENIZER = json.loads((CHECKPOINT / "tokenizer.json").read_text(encoding="utf-8"))
WEIGHTS = (CHECKPOINT / "model.safetensors").read_bytes()
LENGTH = struct.unpack("<Q", WEIGHTS[:8])[0]
HEADER = json.loads(WEIGHTS[8 : 8 + LENGTH])
EMBEDDING = "model.embed_tokens.weight"
ROPES: tuple[Any, ...] = (
    {"rope_type": "yarn"},
    {"rope_type": "yarn", "factor": -1},
    {"rope_type": "x"},
    {"rope_theta": 0},
    {},
    [],
)


def loaded(name: str, shown: object = "", make: Callable[[Path], object] = lambda folder: "", **changed: Any) -> Case:
    """Stage `sft`, which loads the model and trains nothing."""
    files = {f"model/{key.replace('__', '.')}": value for key, value in {**checkpoint(), **changed}.items()}
    place = written({**files, "bad.yaml": SETTINGS, "out/data/sft.jsonl": ""})

    def all_of_it(folder: Path) -> None:
        place(folder)
        make(folder / "model")

    arguments = ("sft", "--config", "{}/bad.yaml")
    return Case(name, arguments, all_of_it, program="components", loads=LOADS, shown=shown or changed)


def planned(name: str, tree: Any) -> Case:
    """How much memory a model of this configuration takes."""
    arguments = ("plan", "--model", "{}/model", "--memory", "8GiB", "--config", "{}/../configs/demo.yaml")
    return Case(name, arguments, written({"model/config.json": tree}), loads=PLAN, shown=tree)


def weights(header: Any, data: bytes = WEIGHTS[8 + LENGTH :], length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def with_entry(**changed: Any) -> dict[str, Any]:
    return {**HEADER, EMBEDDING: {**HEADER[EMBEDDING], **changed}}


def headers() -> Iterator[tuple[str, bytes]]:
    """Safetensors files whose header says what is not so."""
    for name, value in {
        "length-huge": 2**63,
        "length-negative": 2**64 - 1,
        "length-zero": 0,
        "length-short": LENGTH - 10,
        "length-long": LENGTH + 10**6,
        "length-of-100-mb": 10**8,
    }.items():
        yield name, weights(HEADER, length=value)
    entries: dict[str, dict[str, Any]] = {
        "dtype-unknown": {"dtype": "X"},
        "dtype-integers": {"dtype": "I16"},
        "dtype-of-others": {"dtype": "F8_E4M3"},
        "dtype-number": {"dtype": 7},
        "shape-negative": {"shape": [-262, 32]},
        "shape-huge": {"shape": [2**62, 2**62]},
        "shape-zero": {"shape": [0, 32]},
        "shape-wrong": {"shape": [32, 262]},
        "shape-scalar": {"shape": []},
        "shape-many": {"shape": [1] * 5000 + [262, 32]},
        "shape-text": {"shape": ["262", 32]},
        "offsets-swapped": {"data_offsets": [16768, 0]},
        "offsets-beyond": {"data_offsets": [0, 2**40]},
        "offsets-overlap": {"data_offsets": [16, 16784]},
        "offsets-one": {"data_offsets": [0]},
        "offsets-negative": {"data_offsets": [-16768, 0]},
    }
    for name, entry in entries.items():
        yield name, weights(with_entry(**entry))
    for name, text in list(json_texts().items()):
        yield f"header-{name}", weights(text.encode()[:500_000])
    yield "no-tensors", weights({"__metadata__": {}}, b"")
    yield "metadata-list", weights({**HEADER, "__metadata__": []})
    yield "metadata-numbers", weights({**HEADER, "__metadata__": {"format": 7}})
    yield "metadata-format", weights({**HEADER, "__metadata__": {"format": "tf"}})
    yield "one-missing", weights({key: value for key, value in HEADER.items() if "norm" not in key})
    yield "one-more", weights({**HEADER, "x" * 10_000: HEADER[EMBEDDING]})
    yield "not-finite", weights(HEADER, b"\xff\x7f" * ((len(WEIGHTS) - 8 - LENGTH) // 2))
    yield "zeros", weights(HEADER, bytes(len(WEIGHTS) - 8 - LENGTH))
    yield "longer", WEIGHTS + b"x" * 100
    yield "empty", b""
    yield "pickle", b"\x80\x04cos\nsystem\n(S'id'\ntR."


def large(size: int, name: str, folder: Path) -> object:
    os.truncate(folder / name, size)
    return f"{name} of {size:,} bytes"


def instead(name: str, target: str, folder: Path) -> object:
    (folder / name).unlink()
    os.mkfifo(folder / name) if target == "pipe" else (folder / name).symlink_to(target)
    return f"{name} is {target}"


def cases() -> Iterator[Case]:
    for name, tree in replacements(CONFIG, seeded("config"), 3):
        yield loaded(f"config-{name}", name, config__json=tree)
    for name, tree in reshaped(CONFIG, seeded("config"), 20):
        yield loaded(f"config-{name}", name, config__json=tree)
    for number, rope in enumerate(ROPES):
        yield loaded(f"rope-{number}", rope, config__json={**CONFIG, "rope_parameters": rope})
    for name, data in headers():
        yield loaded(f"weights-{name}", data[:300], model__safetensors=data)
    for name, data in broken(WEIGHTS, seeded("weights"), 30):
        yield loaded(f"weights-bytes-{name}", name, model__safetensors=data)
    some = sample(list(replacements(TOKENIZER, seeded("tokenizer"), 1)), 50, "tokenizer")
    for name, tree in some:
        yield loaded(f"tokenizer-{name}", name, tokenizer__json=tree)
    for name, data in broken((CHECKPOINT / "tokenizer.json").read_bytes(), seeded("bytes"), 15):
        yield loaded(f"tokenizer-bytes-{name}", name, tokenizer__json=data)
    for file in ("config", "tokenizer", "tokenizer_config", "generation_config"):
        for name, text in list(json_texts().items())[::2]:
            changed: dict[str, Any] = {f"{file}__json": text}
            yield loaded(f"{file}-all-{name}", text, **changed)
    for name in sorted(path.name for path in CHECKPOINT.iterdir()):
        for target in ("pipe", "/dev/zero", ".", "nothing"):
            yield loaded(f"{name}-is-{target.strip('/')}", make=partial(instead, name, target))
        if name != "model.safetensors":
            yield loaded(f"{name}-large", make=partial(large, 2**27, name))
    yield from plans()
    yield from gguf()


def plans() -> Iterator[Case]:
    for name, tree in sample(list(replacements(CONFIG, seeded("plan"), 3)), 50, "plan"):
        yield planned(f"plan-{name}", tree)
    for key in ("hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size", "num_attention_heads"):
        for value in (0, 10**6, 10**9):
            yield planned(f"plan-{key}-{value}", {**CONFIG, key: value})
    for kind in ("llama", "gpt2", "mixtral", "bert", "t5", "whisper", "x", ""):
        yield planned(f"plan-of-{kind or 'nothing'}", {"model_type": kind})


def gguf() -> Iterator[Case]:
    """Files that are hardly GGUF."""
    text = b"general.architecture"
    entry = struct.pack("<Q", len(text)) + text + struct.pack("<IQ", 8, 5) + b"llama"
    tensor = struct.pack("<Q", 1) + b"t" + struct.pack("<IQIQ", 1, 8, 0, 0)
    whole = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + entry + tensor
    whole += bytes(-len(whole) % 32) + bytes(32)
    files = {"whole": whole, "empty": b"", "magic": b"GGUF", "version-9": b"GGUF" + struct.pack("<IQQ", 9, 0, 0)}
    files["counts"] = b"GGUF" + struct.pack("<IQQ", 3, 2**63, 2**63)
    files["long-text"] = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 2**62)
    for name, data in (*files.items(), *broken(whole, seeded("gguf"), 25)):
        arguments = ("model", "convert", "{}/x.gguf", "--to", "{}/converted")
        yield Case(
            f"gguf-{name}", arguments, written({"x.gguf": data}), loads=("components.models.convert",), shown=data
        )


@pytest.mark.parametrize("case", chosen(cases(), 0))
def test_a_bad_checkpoint_is_refused(case: Case, hostile: Callable[[Case], End]) -> None:
    hostile(case)
