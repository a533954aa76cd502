"""From YAML files and ``--set`` overrides to `Settings`.

A file may name others under ``extends``; they are merged beneath it, later ones over earlier ones. The result can be
written out whole (`dump`), defaults and input digests included: that file is what DVC tracks as ``params.yaml``.
By hand, as libraries know neither digests of inputs nor errors with the file that a setting comes from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from components.config.complaints import complaint
from components.config.documents import Dumper, comment_of, read
from components.config.root import Settings
from components.config.shipped import PREFIX, PROJECT_CONFIGS, packaged
from components.errors import InputError
from components.files import os_errors, read_text
from components.opening import MOST_CONFIGURATION, impossible

Tree = dict[str, Any]

SAME = frozenset(
    name for name, field in Settings.model_fields.items() if "kind" in getattr(field.annotation, "model_fields", {})
)
"""Sections every kind of which has the same settings."""
SHOWN = 80
"""Characters of an override that an error shows."""
EXTENDED = "name a configuration file by its path from the folder of this one, or one of the package as evenkeel:NAME"


def load(path: Path, overrides: Sequence[str] = (), recipe: Path | None = None) -> Settings:
    """Read ``path``, apply ``a.b=value`` overrides, fill in the health rules, validate.

    Args:
        path: a file, or one of the package: `evenkeel:demo.yaml`.
        recipe: taken in place of the recipe that the file extends, or beneath everything where it extends none.

    Raises:
        InputError: missing or malformed file, unknown key, impossible value or degenerate combination.
    """
    path = packaged(path) or path
    # Over the defaults, so that one key of a section with a `kind` can be changed without naming the kind again.
    tree = merge(Settings().model_dump(mode="json", exclude={"health": {"rules"}}), read_tree(path, recipe))
    for override in overrides:
        apply_override(tree, override)
    health = tree.setdefault("health", {})
    if isinstance(health, dict) and "rules" not in health:
        health["rules"] = read_rules(find_rules(path, str(health.get("rules_file", "default"))))
    return validate(tree, where=str(path))


def read_tree(path: Path, recipe: Path | None = None) -> Tree:
    """The merged YAML of ``path`` and of the files it extends; see `load` for ``recipe``."""
    replaced: list[str] = []
    tree = _read_extended(path, recipe, replaced, ())
    return merge(read_tree(recipe), tree) if recipe and not replaced else tree


def _read_extended(path: Path, recipe: Path | None, replaced: list[str], seen: tuple[str, ...]) -> Tree:
    tree = read_mapping(path)  # first, so that the path is a possible one
    real = os.path.realpath(path)
    if real in seen:
        raise InputError("a configuration extends itself", where=path, how="remove the circle from `extends`")
    bases = tree.pop("extends", [])
    bases = [bases] if isinstance(bases, str) else bases
    if not isinstance(bases, list) or not all(isinstance(base, str) for base in bases):
        raise InputError("`extends` is a file name or a list of them", where=path, how="write extends: [demo.yaml]")
    merged: Tree = {}
    for base in bases:
        named = packaged(base) or path.parent / base
        if problem := _no_base(named):
            raise InputError(f"`extends` names {base!r}, which {problem}", where=path, how=EXTENDED)
        if recipe and Path(base.removeprefix(PREFIX)).parent.name == "recipes":
            replaced.append(base)
            below = read_tree(recipe)
        else:
            below = _read_extended(named, recipe, replaced, (*seen, real))
        merged = merge(merged, below)
    return merge(merged, tree)


def _no_base(path: Path) -> str:
    """Why a configuration cannot extend this; empty where it may, and where reading it says more."""
    if impossible(path):
        return ""
    return "is a folder" if path.is_dir() else "" if os.path.lexists(path) else "is not there"


def find_rules(config: Path, name: str) -> Path:
    """``health/<name>.yaml`` next to the configuration, in a folder above it, or in the project's `configs`."""
    folders = (*config.resolve().parents, PROJECT_CONFIGS)
    candidates = [folder / "health" / f"{name}.yaml" for folder in folders]
    with os_errors("look for the health rules", Path(f"{name}.yaml")):
        found = next((path for path in candidates if path.is_file()), None)
    if found:
        return found
    raise InputError(
        f"no health rules named {name!r}",
        where="health.rules_file",
        how=f"put {name}.yaml into a folder `health` next to {config}, or name another file",
    )


def read_rules(path: Path) -> Tree:
    """The rules of one health file."""
    tree = read_mapping(path)
    rules = tree.get("rules")
    if not isinstance(rules, dict) or set(tree) != {"rules"}:
        raise InputError("a health file holds one mapping named `rules`", where=path)
    return rules


def read_mapping(path: Path) -> Tree:
    """One YAML file whose top level is a mapping; empty for an empty file."""
    tree = read(read_text(path, most=MOST_CONFIGURATION), path)
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InputError("a configuration is a mapping of settings", where=path, how="start from configs/demo.yaml")
    return tree


def merge(below: Mapping[str, Any], above: Mapping[str, Any], *, same: bool = False) -> Tree:
    """Deep merge of two trees; ``above`` wins. A section whose ``kind`` changes begins again instead of inheriting keys
    of another kind, unless every kind of it has the ``same`` ones."""
    merged = dict(below) if same else _inherited(below, above)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = merge(old, value, same=key in SAME)
        merged[key] = value
    return merged


def _inherited(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """What ``above`` is put upon: nothing if it is of another kind, only the kind if it is another task's."""
    if "kind" in above and above["kind"] != below.get("kind"):
        return {}
    if "task" in above and above["task"] != below.get("task"):
        return {key: value for key, value in below.items() if key == "kind"}
    return dict(below)


def apply_override(tree: Tree, override: str) -> None:
    """Set one value in place; the right-hand side is YAML (``train.steps=20``, ``schedule={kind: uniform}``)."""
    key, separator, text = override.partition("=")
    if not separator or not all(key.split(".")):
        raise InputError(f"cannot read the override {override!r}", where="--set", how="write --set section.name=value")
    where = f"--set {override[:SHOWN]}"
    value = read(text, where, how="correct the value, or quote it where it is text")
    if comment := comment_of(text):
        what = f"YAML takes {comment!r} for a comment"
        raise InputError(what, where=where, how="quote the text: --set 'name=\"text with # in it\"'")
    *parents, last = key.split(".")
    node = tree
    for parent in parents:
        child = {} if node.get(parent) is None else node[parent]
        if not isinstance(child, dict):
            raise InputError(f"{parent!r} in {key!r} is a value, not a section", where="--set")
        node[parent] = node = dict(child)  # another section may be the same one, by an alias of YAML
    same = len(parents) == 1 and parents[0] in SAME
    kept = dict(node) if same else _inherited(node, {last: value})
    node.clear()
    node.update(kept)
    old, whole = node.get(last), not parents and last in SAME
    node[last] = merge(old, value, same=whole) if isinstance(old, dict) and isinstance(value, dict) else value


def validate(tree: Mapping[str, Any], *, where: str) -> Settings:
    """Build `Settings`, or raise one error with a sentence for every wrong key."""
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise InputError(
            "the configuration is not valid:\n" + "\n".join(f"  - {complaint(e)}" for e in error.errors()),
            where=where,
            how="correct the keys above (`--set key=value`, or the file); `evenkeel params` prints every setting",
        ) from error


def dump(settings: Settings, *, without: Set[str] = frozenset()) -> str:
    """Every setting as YAML, defaults included, but for the sections ``without``. Loading it gives equal settings."""
    return _written(json.dumps(settings.model_dump(mode="json", exclude=set(without))))


@lru_cache(maxsize=8)
def _written(tree: str) -> str:
    """JSON as YAML. A run writes its settings several times, and PyYAML takes a tenth of a second for them."""
    return yaml.dump(json.loads(tree), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
