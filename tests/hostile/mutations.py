"""Bad values for a tree, trees with one thing wrong, bad texts and bytes. Always the same."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

Tree = Any
At = tuple[str | int, ...]


def nested(levels: int) -> list[Any]:
    """A list in a list in a list ..."""
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus-one": -1,
    "half": 0.5,
    "2^31": 2**31,
    "2^63-1": 2**63 - 1,
    "-2^63+1": -(2**63) + 1,
    "1e308": 1e308,
    "-1e308": -1e308,
    "tiny": 5e-324,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "empty-text": "",
    "word": "x",
    "number-as-text": "7",
    "long-text": "x" * 70_000,
    "nul": "a\0b",
    "line-break": "a\nb",
    "control": "a\u0007\u009b31mb",
    "right-to-left": "a\u202eb",
    "letters-of-others": "ключ-鍵-🗝",
    "template": "{{ 7 * 7 }} {% raw %} ${HOME} `id` $(id) %s%n",
    "above": "../../../../etc/passwd",
    "device": "/dev/zero",
    "memory": "/proc/self/mem",
    "pattern": "(a+)+$",
    "broken-pattern": "(((",
    "empty-list": [],
    "list-of-null": [None],
    "many": [0] * 2000,
    "nested": nested(60),
    "empty-section": {},
    "kind-of-nothing": {"kind": "x"},
    "odd-keys": {"": 1, " ": {"a.b": None}, "__class__": {}},
}
"""By a name that can stand in the name of a case. JSON and YAML can write all of them."""


def places(tree: Tree, at: At = ()) -> Iterator[At]:
    """Every place of a tree but its root, sections and lists before what is in them."""
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from places(value, (*at, key))


def leaves(tree: Tree) -> list[At]:
    """The places with a value that is no section and no list, or is empty."""
    return [at for at in places(tree) if not value_at(tree, at) or not isinstance(value_at(tree, at), dict | list)]


def value_at(tree: Tree, at: At) -> Any:
    for key in at:
        tree = tree[key]
    return tree


def replaced(tree: Tree, at: At, value: Any) -> Tree:
    """A copy of the tree with another value there."""
    if not at:
        return value
    made = copy.deepcopy(tree)
    value_at(made, at[:-1])[at[-1]] = value
    return made


def without(tree: Tree, at: At) -> Tree:
    """A copy of the tree without what is there."""
    made = copy.deepcopy(tree)
    del value_at(made, at[:-1])[at[-1]]
    return made


def spelled(at: At) -> str:
    return ".".join(map(str, at)) or "all"


def replacements(tree: Tree, rng: random.Random, each: int) -> Iterator[tuple[str, Callable[[], Tree]]]:
    """At most ``each`` bad values for every leaf, and one for every section and list; made when they are called."""
    ends = set(leaves(tree))
    for at in places(tree):
        for name in rng.sample(list(VALUES), each if at in ends else 1):
            if VALUES[name] != value_at(tree, at):
                yield f"{spelled(at)}={name}", partial(replaced, tree, at, VALUES[name])


def reshaped(tree: Tree, rng: random.Random, count: int) -> Iterator[tuple[str, Callable[[], Tree]]]:
    """Things that are missing, unknown, or that stand in the wrong place."""
    everywhere = list(places(tree))
    for at in rng.sample(everywhere, min(count, len(everywhere))):
        value, way = value_at(tree, at), rng.choice(["missing", "unknown", "in-a-list", "in-a-section", "twice", "all"])
        made = {
            "missing": partial(without, tree, at),
            "unknown": partial(replaced, tree, (*at, "no_such_thing") if isinstance(value, dict) else at, tree),
            "in-a-list": partial(replaced, tree, at, [value]),
            "in-a-section": partial(replaced, tree, at, {str(at[-1]): value}),
            "twice": partial(replaced, tree, at, [value, value]),
            "all": partial(replaced, tree, at, tree),
        }[way]
        yield f"{spelled(at)}-{way}", made


def broken(data: bytes, rng: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """The same bytes with one thing wrong, each in another way and at another place."""
    for number in range(count):
        name = list(BREAKS)[number % len(BREAKS)]
        at = rng.randrange(max(1, len(data)))
        yield f"{name}-{number}@{at}", BREAKS[name](data, at, rng)


def _flipped(data: bytes, at: int, rng: random.Random) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if data else b"\x80"


def _number(data: bytes, at: int, rng: random.Random) -> bytes:
    """A digit becomes many."""
    while at < len(data) and not chr(data[at]).isdigit():
        at += 1
    return data[:at] + rng.choice([b"9" * 30, b"-1", b"1e999", b"0"]) + data[at + 1 :]


BREAKS: dict[str, Callable[[bytes, int, random.Random], bytes]] = {
    "flipped": _flipped,
    "cut": lambda data, at, _: data[:at],
    "headless": lambda data, at, _: data[at + 1 :],
    "hole": lambda data, at, rng: data[:at] + data[at + rng.randrange(1, 64) :],
    "zeros": lambda data, at, _: data[:at] + bytes(len(data[at : at + 32])) + data[at + 32 :],
    "ones": lambda data, at, _: data[:at] + b"\xff" * len(data[at : at + 8]) + data[at + 8 :],
    "repeated": lambda data, at, rng: data[: at + rng.randrange(1, 200)] + data[at:],
    "digits": _number,
    "longer": lambda data, at, rng: data + data[at:] + rng.randbytes(16),
    "noise": lambda data, at, rng: rng.randbytes(1 + at % 500),
}
"""By name: given the bytes, a place in them, and random numbers."""


@cache
def json_texts() -> dict[str, str]:
    """Texts that are no JSON, or JSON that means trouble."""
    return {
        "nothing": "",
        "space": " \n\t\r\n ",
        "null": "null",
        "number": "7",
        "text": '"x"',
        "list": "[]",
        "section": "{}",
        "nan": '{"a": NaN, "b": -Infinity}',
        "huge-number": '{"step": ' + "9" * 5000 + "}",
        "huge-exponent": '{"step": 1e999999}',
        "deep-lists": "[" * 100_000,
        "deep-sections": '{"a":' * 100_000 + "1" + "}" * 100_000,
        "same-key": '{"step": 1, "step": {}}',
        "surrogate": '{"step": "\\ud800"}',
        "nul": '{"step": "a\\u0000b"}',
        "two-values": "{}{}",
        "comment": "// {}\n{}",
        "half": '{"step": 1, "lo',
        "long-line": json.dumps({"a": "x" * 2_000_000}),
        "many-keys": json.dumps({str(n): n for n in range(50_000)}),
    }
