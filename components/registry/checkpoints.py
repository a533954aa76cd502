"""What may be loaded and promoted: safetensors, a tokenizer and plain configuration. Nothing that can run code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from components.errors import InputError
from components.files import os_errors, read_json, sha256_tree

PICKLED = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib"})
CODE = frozenset({".py", ".pyc", ".so"})
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
CODE_KEYS = frozenset({"auto_map", "custom_pipelines", "trust_remote_code"})
"""Keys of Hugging Face configurations that make a loader import Python from the checkpoint."""

_ZIP, _PICKLE_PROTOCOLS = b"PK\x03\x04", tuple(bytes((0x80, protocol)) for protocol in range(2, 6))


def check_checkpoint(path: Path) -> str:
    """Refuse a checkpoint folder that is not whole or not harmless.

    Returns:
        The digest over its manifest.

    Raises:
        InputError: a pickle (by name or by content), code, or a symbolic link; no config, tokenizer or weights;
            weights whose header cannot be read; an index that names shards that are not there.
    """
    digest = sha256_tree(path)
    for file in sorted(path.rglob("*")):
        if file.is_file():
            _check_kind(file)
    _check_config(path)
    if not any((path / name).is_file() for name in TOKENIZERS):
        raise _refusal("the checkpoint has no tokenizer", path, f"save it beside the weights ({TOKENIZERS[0]})")
    tensors = {file.name: _tensor_names(file) for file in sorted(path.glob("*.safetensors"))}
    if not any(tensors.values()):
        raise _refusal("the checkpoint has no safetensors weights", path, "save it with safe serialization")
    for index in sorted(path.glob("*.safetensors.index.json")):
        _check_index(index, tensors)
    return digest


def _refusal(what: str, where: Path, how: str) -> InputError:
    return InputError(what, where=where, how=how)


def _check_kind(file: Path) -> None:
    suffix = file.suffix.lower()
    if suffix in PICKLED:
        raise _refusal(f"a {suffix} file can hold a pickle, which runs code when it is loaded", file, "use safetensors")
    if suffix in CODE:
        raise _refusal("a checkpoint must not bring code", file, "use an architecture that transformers knows")
    with os_errors("read", file), file.open("rb") as stream:
        start = stream.read(4)
    if suffix != ".safetensors" and start.startswith((_ZIP, *_PICKLE_PROTOCOLS)):
        raise _refusal("a pickle under another name", file, "use safetensors")


def _check_config(path: Path) -> None:
    config = _object(path / "config.json")
    if not isinstance(config.get("model_type"), str):
        raise _refusal("config.json does not say which architecture this is", path, "it must have a model_type")
    for file in sorted(path.rglob("*config.json")):
        found = sorted(CODE_KEYS & _keys(_object(file)))
        if found:
            raise _refusal(f"{found[0]} asks the loader to run code", file, "use an architecture transformers knows")


def _object(file: Path) -> dict[str, Any]:
    value = read_json(file, how="save the checkpoint again")
    if not isinstance(value, dict):
        raise _refusal("expected a JSON object", file, "save the checkpoint again")
    return value


def _keys(value: Any) -> set[str]:
    """Every key at any depth."""
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()


def _tensor_names(file: Path) -> set[str]:
    """Names of the tensors, from the header; the reader checks offsets and sizes against the file."""
    try:
        with safe_open(file, framework="numpy") as tensors:
            return set(tensors.keys())
    except (SafetensorError, OSError) as error:
        raise _refusal(f"not a safetensors file: {error}", file, "save the checkpoint again") from error


def _check_index(index: Path, tensors: dict[str, set[str]]) -> None:
    weights = _object(index).get("weight_map")
    if not isinstance(weights, dict) or not weights:
        raise _refusal("the index of the shards has no weight_map", index, "save the checkpoint again")
    for tensor, shard in weights.items():
        if tensor not in tensors.get(shard, ()):
            raise _refusal(f"the index names {tensor} in {shard}, which is not there", index, "copy all the shards")
