"""DVC's reading and writing of YAML inside of a process that runs several of its commands: the same results, sooner.

DVC reads ``dvc.lock``, ``dvc.yaml`` and ``params.yaml`` several times a command, and after every stage it reads and
writes all of ``dvc.lock`` by the YAML parser in Python that keeps comments: 1.2 s of a core for the 7,000 lines of a
run. Here a text is parsed once, and only the stages of ``dvc.lock`` that a command has changed are parsed and written.
For every setting that a stage depends on, DVC searches all of ``params.yaml``; here it is looked up by its path.
"""

from __future__ import annotations

import functools
import marshal
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpath
import dvc.dependency.param
import dvc.dvcfile
import dvc.utils.serialize._yaml as plain
import dvc.utils.strictyaml as strict
from dvc.utils.serialize import YAMLFileCorruptedError, dumps_yaml, modify_yaml, parse_yaml

from components.files import write_text

HEAD = "schema: '2.0'\nstages:\n"
"""Of a ``dvc.lock``, as DVC writes it."""
STAGE = re.compile(r"^(?=  [^ \n])", re.MULTILINE)
"""Where a stage begins in it."""
GLOB = re.compile(r"[*?[]")


def install() -> None:
    """Put these functions in the place of DVC's, in this process."""
    plain.parse_yaml = strict.parse_yaml = parse
    dvc.dvcfile.modify_yaml = modify_lock  # of its own files `repro` writes no other
    dvc.dependency.param.dpath = SimpleNamespace(get=get, search=dpath.search)


def get(config: Any, key: str, separator: str) -> Any:
    """`dpath.get`, at once for a path of plain names that is there."""
    found = config
    for name in key.split(separator):
        if GLOB.search(name) or not isinstance(found, dict) or name not in found:
            return dpath.get(config, key, separator=separator)
        found = found[name]
    return found


def parse(text: str, path: str, typ: str = "safe") -> Any:
    """DVC's `parse_yaml`."""
    if typ == "safe":
        with suppress(ValueError, YAMLFileCorruptedError):  # marshal knows no dates; DVC explains what is not YAML
            if text.startswith(HEAD) and (blocks := _blocks(text)):
                stages = [marshal.loads(_parsed(block)) for block in blocks]
                return {"schema": "2.0", "stages": {name: stage for one in stages for name, stage in one.items()}}
            return marshal.loads(_parsed(text))
    return parse_yaml(text, path, typ)


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> bytes:
    return marshal.dumps(parse_yaml(text, ""))


def _blocks(text: str) -> list[str]:
    return [block for block in STAGE.split(text.removeprefix(HEAD)) if block]


@contextmanager
def modify_lock(path: str | os.PathLike[str], fs: Any = None) -> Iterator[Any]:
    """DVC's `modify_yaml` for a ``dvc.lock``. A file that does not look as DVC writes it is left to DVC."""
    file = Path(path)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    blocks = {block.strip().partition(":")[0]: block for block in _blocks(text)}
    data = parse(text, str(path)) if blocks and text.startswith(HEAD) else {}
    before = data.get("stages", {}).copy()
    if not before or list(blocks) != list(before):
        with modify_yaml(path, fs=fs) as slowly:
            yield slowly
        return
    yield data
    for name, stage in data["stages"].items():
        if stage is not before.get(name):
            blocks[name] = dumps_yaml({"stages": {name: stage}}).removeprefix("stages:\n")
    write_text(file, HEAD + "".join(blocks[name] for name in data["stages"]))
