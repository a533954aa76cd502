"""DVC inside of a process that runs several of its commands: the same results, sooner.

DVC reads ``dvc.lock``, ``dvc.yaml`` and ``params.yaml`` several times a command, and after every stage it reads and
writes all of ``dvc.lock`` by the YAML parser in Python that keeps comments: 1.2 s of a core for the 7,000 lines of a
run. Here a text is parsed once, only the stages of ``dvc.lock`` that a command has changed are parsed and written, and
the emitter in C writes the entries of the run cache. For every setting that a stage depends on, DVC searches all of
``params.yaml``; here it is looked up by its path. Four times a command DVC digests what a stage depends on only to see
that it can be digested; here once.
"""

from __future__ import annotations

import functools
import io
import marshal
import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import dpath
import dvc.dependency.param
import dvc.dvcfile
import dvc.stage.cache
import dvc.utils.serialize as serialize
import dvc.utils.serialize._yaml as plain
import dvc.utils.strictyaml as strict
from dvc.utils.serialize import YAMLFileCorruptedError, dumps_yaml, modify_yaml, parse_yaml
from ruamel.yaml import YAML
from ruamel.yaml.representer import SafeRepresenter

from components.files import write_text

HEAD = "schema: '2.0'\nstages:\n"
"""Of a ``dvc.lock``, as DVC writes it."""
STAGE = re.compile(r"^(?=  [^ \n])", re.MULTILINE)
"""Where a stage begins in it."""
GLOB = re.compile(r"[*?[]")
EMPTY = re.compile(r"(?<=[:-]) $", re.MULTILINE)
"""What the emitter in C writes for null; text that is broken into lines has no space there."""
digestible = dvc.stage.cache._can_hash


def install() -> None:
    """Put these functions in the place of DVC's, in this process."""
    plain.parse_yaml = strict.parse_yaml = parse
    serialize.dump_yaml = dump_yaml  # the run cache alone looks it up there when it writes
    dvc.dvcfile.modify_yaml = modify_lock  # of its own files `repro` writes no other
    dvc.stage.cache._can_hash = can_hash
    dvc.dependency.param.dpath = SimpleNamespace(get=get, search=dpath.search)


def get(config: Any, key: str, separator: str) -> Any:
    """`dpath.get`, at once for a path of plain names that is there."""
    found = config
    for name in key.split(separator):
        if GLOB.search(name) or not isinstance(found, dict) or name not in found:
            return dpath.get(config, key, separator=separator)
        found = found[name]
    return found


class Plain(SafeRepresenter):
    """Represents null and ordered dictionaries as DVC's representer does."""


Plain.add_representer(type(None), lambda own, _: own.represent_scalar("tag:yaml.org,2002:null", ""))
Plain.add_representer(OrderedDict, SafeRepresenter.represent_dict)


def dump_yaml(path: str, data: Any, fs: Any = None, **options: Any) -> Any:
    """DVC's `dump_yaml`, by `dump`."""
    return plain._dump_data(path, data, dumper=dump, fs=fs, **options)


def dump(data: Any, stream: TextIO) -> None:
    """DVC's `_dump`, but for the places where a long text is broken into lines, and escapes for characters beyond
    the basic multilingual plane."""
    yaml = YAML(typ="safe")
    yaml.Representer = Plain
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    text = io.StringIO()
    yaml.dump(data, text)
    stream.write(EMPTY.sub("", text.getvalue()))


def can_hash(stage: Any) -> bool:
    """DVC's `_can_hash`; a stage that could be digested once is not tried again in the same command."""
    stage.can_hash = getattr(stage, "can_hash", False) or digestible(stage)
    return bool(stage.can_hash)


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
