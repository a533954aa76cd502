"""What a checkpoint can be written as."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from components.errors import InputError
from components.registry.copying import copy_tree

ADAPTER = "adapter"
"""Folder of a checkpoint with the adapter alone, see `components.policy.lora`."""
CARD, OTHERS = "README.md", "README.original.md"
"""A card that came with the checkpoint keeps its text under the second name."""
GGUF = "model.gguf"


class Form(StrEnum):
    """What `evenkeel export` writes."""

    safetensors = "safetensors"
    adapter = "adapter"
    gguf = "gguf"


LIBRARIES = {Form.safetensors: "transformers", Form.adapter: "peft", Form.gguf: "gguf"}
"""What a hub calls the library that loads it."""


def write(form: Form, tree: Path, digest: str, folder: Path, title: str) -> None:
    """Fill an empty folder with a checkpoint in this form.

    Args:
        tree: files of the checkpoint, ``digest`` theirs.
        title: name of the model, where the form stores one.

    Raises:
        InputError: it has no adapter, or no GGUF file can be made of it.
    """
    match form:
        case Form.safetensors:
            copy_tree(tree, folder, digest)
            if (folder / CARD).exists():
                (folder / CARD).rename(folder / OTHERS)
        case Form.adapter:
            if not (tree / ADAPTER).is_dir():
                how = "export it as safetensors; only a run with policy.lora leaves an adapter"
                raise InputError("the checkpoint has no adapter", where=digest, how=how)
            with _verified(tree, digest, folder) as copy:
                shutil.copytree(copy / ADAPTER, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
        case Form.gguf:
            from components.models.export import export_gguf  # imports torch

            with _verified(tree, digest, folder) as copy:
                export_gguf(copy, folder / GGUF, title)


@contextmanager
def _verified(tree: Path, digest: str, folder: Path) -> Iterator[Path]:
    """A copy of a stored checkpoint on the disk of ``folder``: what is stored may change while it is read."""
    with TemporaryDirectory(dir=folder) as name:
        copy_tree(tree, Path(name), digest)
        yield Path(name)
