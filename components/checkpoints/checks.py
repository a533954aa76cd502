"""What may be loaded and promoted: safetensors, a tokenizer and plain configuration. Nothing that can run code.

`check_checkpoint` is for every folder that is loaded. One that goes into the registry, or comes out of it, is held to
more (`check_proposed`, `check_stored`): it was made by a run, so nothing about it needs to be forgiven.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

from components.checkpoints.contents import check_content, check_kind
from components.checkpoints.figures import check_figures, entries
from components.checkpoints.names import check_names
from components.checkpoints.tensors import Entry, read_entries
from components.errors import InputError
from components.files import manifest, os_errors, read_json
from components.working import working

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
CODE_KEYS = frozenset({"auto_map", "custom_pipelines", "trust_remote_code"})
"""Keys of Hugging Face configurations that make a loader import Python from the checkpoint."""
ATTENTION_KEYS = frozenset({"attn_implementation", "_attn_implementation"})
OWN_ATTENTION = re.compile(r"(paged\|)?\w+", re.ASCII)
"""How transformers calls what it brings itself; anything else may be a repository whose code it fetches and runs."""
EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def check_checkpoint(path: Path) -> dict[str, str]:
    """Refuse a checkpoint folder that is not whole or not harmless.

    Returns:
        Its manifest: relative path -> sha256.

    Raises:
        InputError: a pickle (by name or by content), code, a kind of file that no checkpoint needs, a link, a device;
            names that are not the same everywhere; no config, tokenizer or weights; weights whose header does not fit
            the file, or that are no floating-point numbers; an index that names shards that are not there; a chat
            template that is no text; figures in the configuration that no model has.
    """
    files = _files(path)
    for file in files:
        check_kind(file)
    check_names([file.relative_to(path).as_posix() for file in files], path)
    with working(f"hashing {path.name}"):
        digests = manifest(path)
    for file in files:
        check_content(file)
    _check_config(path, files)
    if not any((path / name).is_file() for name in TOKENIZERS):
        raise _refusal("the checkpoint has no tokenizer", path, f"save it next to the weights ({TOKENIZERS[0]})")
    weights = [file for file in files if file.suffix.lower() == ".safetensors"]
    tensors = {file.relative_to(path).as_posix(): read_entries(file) for file in weights}
    if not any(tensors.get(file.name) for file in path.glob("*.safetensors")):
        raise _refusal("the checkpoint has no safetensors weights", path, "save it with safe serialization")
    for index in sorted(path.glob("*.safetensors.index.json")):
        _check_index(index, tensors)
    top = [entry for name, found in tensors.items() if "/" not in name for entry in found.values()]
    check_figures(_object(path / "config.json"), top, path / "config.json")
    return digests


def check_proposed(path: Path) -> dict[str, str]:
    """`check_checkpoint`, and no file may be executable and no folder empty."""
    for folder in path.rglob("*"):
        if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
            raise _refusal("an empty folder in a checkpoint, which no digest covers", folder, "remove it")
    for file in _files(path):
        if file.stat().st_mode & EXECUTABLE:
            raise _refusal("an executable file in a checkpoint", file, f"chmod -x {file.name}, if it belongs there")
    return check_checkpoint(path)


def check_stored(path: Path) -> dict[str, str]:
    """`check_proposed`, and no file may have another name outside the folder, under which it could be changed."""
    found: dict[tuple[int, int], list[Path]] = {}
    for file in _files(path):
        status = file.stat()
        found.setdefault((status.st_dev, status.st_ino), []).append(file)
    for names in found.values():
        if names[0].stat().st_nlink > len(names):
            how = "store a copy: what is linked can be changed from elsewhere"
            raise _refusal("a stored file has another name outside its checkpoint (a hard link)", names[0], how)
    return check_proposed(path)


def _files(path: Path) -> list[Path]:
    """Every file below, sorted; what is neither a file nor a folder is refused."""
    if not path.is_dir():
        raise _refusal("folder not found", path, "check the path in the configuration")
    found = []
    with os_errors("read", path):
        for one in sorted(path.rglob("*")):
            mode = one.lstat().st_mode
            if stat.S_ISLNK(mode):
                raise _refusal("symbolic link inside a checkpoint", one, "replace it by the file itself")
            if stat.S_ISREG(mode):
                found.append(one)
            elif not stat.S_ISDIR(mode):
                raise _refusal("neither a file nor a folder (a device, a socket or a pipe)", one, "remove it")
    return found


def _refusal(what: str, where: Path, how: str) -> InputError:
    return InputError(what, where=where, how=how)


def _check_config(path: Path, files: list[Path]) -> None:
    config = _object(path / "config.json")
    if not isinstance(config.get("model_type"), str):
        raise _refusal("config.json does not say which architecture this is", path, "it must have a model_type")
    for file in files:
        if file.name.lower().endswith("config.json"):
            settings = _object(file)
            if found := sorted({key for key, value in entries(settings) if _runs_code(key, value)}):
                how = "use an architecture transformers knows"
                raise _refusal(f"{found[0]} asks the loader to run code", file, how)
            _check_template(settings.get("chat_template"), file)
        elif file.name.lower() == "chat_template.json":
            _check_template(_object(file).get("chat_template"), file)


def _check_template(template: Any, file: Path) -> None:
    """One text, or several with names."""
    texts = [template] if not isinstance(template, list) else [_named(one) for one in template]
    if template is not None and not all(isinstance(text, str) for text in texts):
        raise _refusal("the chat_template is not plain text", file, "write it as one string")


def _named(one: Any) -> Any:
    return one.get("template") if isinstance(one, dict) and isinstance(one.get("name"), str) else None


def _object(file: Path) -> dict[str, Any]:
    value = read_json(file, how="save the checkpoint again")
    if not isinstance(value, dict):
        raise _refusal("expected a JSON object", file, "save the checkpoint again")
    return value


def _runs_code(key: str, value: Any) -> bool:
    if key not in ATTENTION_KEYS:
        return key in CODE_KEYS
    names = [name for _, name in entries({key: value}) if not isinstance(name, dict)]  # one for each part of a model
    return any(name is not None and not (isinstance(name, str) and OWN_ATTENTION.fullmatch(name)) for name in names)


def _check_index(index: Path, tensors: dict[str, dict[str, Entry]]) -> None:
    weights = _object(index).get("weight_map")
    if not isinstance(weights, dict) or not weights:
        raise _refusal("the index of the shards has no weight_map", index, "save the checkpoint again")
    for tensor, shard in weights.items():
        if not isinstance(shard, str) or tensor not in tensors.get(shard, ()):
            raise _refusal(f"the index names {tensor} in {shard}, which is not there", index, "copy all the shards")
