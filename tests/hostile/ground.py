"""What is as it should be, before one thing of it is changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from components.config import load
from components.config.documents import Dumper
from components.files import write_json
from flows.host.git import git
from tests.code_graph import ROOT
from tests.hostile.cases import Case
from tests.hostile.mutations import Tree
from tests.hostile.runner import DIGESTS, Server
from tests.proposals import propose_in

COPIED = ("configs", "dvc.yaml", "params.yaml", "constraints.txt", "pyproject.toml", ".gitignore", ".dvcignore", ".dvc")
"""What a command looks for in a project, but for the code, which it has loaded."""
CHECKPOINT = next((ROOT / "tests/corpus/schema-1/registry/trees").iterdir())
"""A whole checkpoint of some kilobytes, with a tokenizer and a chat template."""


def checkpoint() -> dict[str, bytes]:
    """The files of `CHECKPOINT` by name, a dot written as two underscores."""
    return {path.name.replace(".", "__"): path.read_bytes() for path in sorted(CHECKPOINT.iterdir())}


def build_project(target: Path) -> Path:
    """A project in which everything is committed."""
    for name in COPIED:
        source = ROOT / name
        copy: Any = shutil.copytree if source.is_dir() else shutil.copy
        target.mkdir(parents=True, exist_ok=True)
        copy(source, target / name, **({"ignore": shutil.ignore_patterns("tmp", "cache")} if source.is_dir() else {}))
    git(target, "init", "--quiet", "--initial-branch=main")
    git(target, "add", "--all")
    git(target, "commit", "--quiet", "--message=ground")
    return target


def build_registry(project: Path, server: Server) -> Path:
    """A registry whose candidates are a champion, one that was rejected, and the challenger."""
    first = propose_in(project).digest
    _decide(server, project, "approve", first)
    second, third = (propose_in(project, value, champion=first).digest for value in (1.0, 2.0))
    _decide(server, project, "reject", second)
    write_json(project / DIGESTS, {"champion": first, "rejected": second, "challenger": third})
    return project / "registry"


def _decide(server: Server, project: Path, action: str, digest: str) -> None:
    end = server.end_of(Case(action, (action, digest, "--by", "ada", "--reason", "ground")), project)
    assert end.code == 0, end.said


@cache
def settings(name: str) -> Tree:
    """Every setting of a configuration of this project, but for its health rules."""
    loaded = load(ROOT / "configs" / f"{name}.yaml")
    return loaded.model_dump(mode="json", exclude={"health": {"rules"}})


def written(files: Mapping[str, Any]) -> Callable[[Path], None]:
    """Makes these files: bytes and text as they are, what makes them is called first, and trees become YAML or JSON."""

    def make(folder: Path) -> None:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_bytes(name, content() if callable(content) else content))

    return make


def _bytes(name: str, content: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    if name.endswith(".json"):
        return json.dumps(content).encode("utf-8", "surrogatepass")
    return yaml.dump(content, Dumper=Dumper, sort_keys=False).encode()


def configured(name: str, content: Any, *command: str, **other: Any) -> Case:
    """A command with a configuration of this content."""
    arguments = (*(command or ("params",)), "--config", "{}/bad.yaml")
    return Case(name, arguments, written({"bad.yaml": content}), shown=other.pop("shown", ""), **other)
