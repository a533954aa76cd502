"""YAML as configurations are written: the scalars of YAML 1.2, every key once, nothing that is read otherwise than it
looks.

PyYAML reads YAML 1.1, where ``yes`` is true, ``010`` is 8, ``1:30`` is 90 and ``2026-01-01`` a date, and ``1e-4`` is
text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from components.errors import InputError
from components.printing import block

if TYPE_CHECKING:
    Fast = yaml.SafeLoader
else:  # the reader in C where there is one: it takes a tenth of the time
    Fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEEPEST = 100
"""Levels of a document; a `dvc.lock` has some ten. At thousands of them the reader in C ends the process."""
LARGEST = 2**63
"""No whole number is as large, with either sign."""
SCALARS: Mapping[str, tuple[str, str]] = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+(?:_[0-9]+)*|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:_[0-9]+)*\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    "merge": (r"<<", "<"),
}
"""By its tag, how a plain scalar is written, and what it begins with; an empty one is null, all others are text."""

KINDS = ("null", "bool", "int", "float", "str", "seq", "map")
"""What a document is made of. Dates, sets, binary and everything else that needs a tag (``!!``) are refused."""


class Loader(Fast):
    """Safe: it makes nothing but mappings, lists, text, numbers, truth values and null."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - of the class, as in PyYAML
    yaml_constructors = {  # noqa: RUF012
        tag: made for tag, made in yaml.SafeLoader.yaml_constructors.items() if tag and tag.rpartition(":")[2] in KINDS
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        if merging := [key for key, _ in node.value if key.tag == "tag:yaml.org,2002:merge"]:
            what = "merge keys (<<) are not read: put what is shared into a file named under extends"
            raise refused(what, merging[0])
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        counted = Counter(key for key in keys if isinstance(key, Hashable))
        if twice := [key for key, count in counted.items() if count > 1]:
            raise refused(f"the key {twice[0]!r} stands twice", node)
        return super().construct_mapping(node, deep)

    def construct_yaml_bool(self, node: yaml.ScalarNode) -> bool:
        text = self.construct_scalar(node)
        if text.lower() not in ("true", "false"):
            raise refused(f"{text!r} is neither true nor false", node)
        return bool(text.lower() == "true")

    def refuse_tag(self, node: yaml.Node) -> Any:
        tag = node.tag.removeprefix("tag:yaml.org,2002:")
        if tag == "merge":
            raise refused("<< is no value: quote it where it is text", node)
        raise refused(f"the tag {tag!r} is not read: write a plain value, in quotes where it is text", node)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node).replace("_", "")
        if re.fullmatch(r"[-+]?0[0-9]+", text):
            raise refused(
                f"{node.value} begins with 0: write the number without it, or quote it where it is text", node
            )
        if len(text) > len(str(LARGEST)) + 1 or abs(number := int(text, 0)) >= LARGEST:
            raise refused(f"a number of {len(text)} digits is too large", node)
        return number

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        text = self.construct_scalar(node).replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan")
        return float(text)


def refused(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    """What is wrong at a place of a document."""
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)


class Dumper(yaml.SafeDumper):
    """Quotes what either version of YAML would take for something else than text, and spells out what does not show:
    PyYAML writes some of it as it is, and reads it as a space."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, '"' if block(text) != text else None)

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        before = self.allow_unicode
        self.allow_unicode = before and block(text) == text
        super().write_double_quoted(text, split)
        self.allow_unicode = before


for kind, (pattern, first) in SCALARS.items():
    resolver = re.compile(rf"(?:{pattern})\Z")
    starts = list(first) + ([""] if kind == "null" else [])
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", resolver, starts)
    Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", resolver, starts)
Dumper.add_representer(str, Dumper.represent_text)
Loader.add_constructor("tag:yaml.org,2002:bool", Loader.construct_yaml_bool)
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
Loader.add_constructor("tag:yaml.org,2002:float", Loader.construct_yaml_float)
Loader.add_constructor(None, Loader.refuse_tag)


AFTER_A_COMMENT = (yaml.BlockEndToken, yaml.StreamEndToken)
"""Tokens that stand after the last comment of a document."""


def read(text: str, where: str | Path, how: str = "fix that line") -> Any:
    """The value of a document.

    Raises:
        InputError: it is no YAML, or not as configurations are written; the line is named.
    """
    return _read(text, where, how, own=True)


def comment_of(text: str) -> str:
    """The comment at the end of a document that can be read; empty where there is none."""
    ends = [token.end_mark.index for token in yaml.scan(text) if not isinstance(token, AFTER_A_COMMENT)]
    rest = text[ends[-1] :].strip()
    return rest if rest.startswith("#") else ""


def foreign(text: str, where: str | Path) -> Any:
    """The value of a document that another program wrote, as PyYAML reads it.

    Raises:
        InputError: it cannot be read.
    """
    return _read(text, where, "restore the file", own=False)


def _read(text: str, where: str | Path, how: str, *, own: bool) -> Any:
    try:
        return deepcopy(_value(text, own))
    except RecursionError:
        what = f"not YAML that can be read: it has more than {DEEPEST} levels"
        raise InputError(what, where=where, how="write fewer brackets inside each other") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark and isinstance(where, Path) else ""
        what = f"not valid YAML: {getattr(error, 'problem', None) or error}"
        raise InputError(what, where=f"{where}{line}", how=how) from error
    except ValueError as error:
        raise InputError(f"not YAML that can be read: {error}", where=where, how=how) from error


@lru_cache(maxsize=16)
def _value(text: str, own: bool) -> Any:
    """One command reads the same few files, such as the health rules, again and again; a copy takes a twentieth of the
    time. What cannot be read is not kept."""
    loader = Loader if own else Fast
    _check_depth(text, loader)
    return yaml.load(text, loader)


def _check_depth(text: str, loader: type[Fast]) -> None:
    """Raise ``RecursionError`` where there are too many levels. Nothing is built meanwhile."""
    level = 0
    for event in yaml.parse(text, Loader=loader):
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if level > DEEPEST:
            raise RecursionError
