"""JSON that is not the reference, and what is no JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from components.audit.grammar.base import Kinds, refused
from components.audit.hacks import Target

JSON: Kinds = ("json",)


def reference(target: Target) -> Any:
    """The value of the reference; `...` where it is no JSON."""
    try:
        return json.loads(target.prompt.answer)
    except (ValueError, RecursionError):
        return ...


def variants(value: Any) -> Iterator[Any]:
    """Values that differ from ``value`` in one place. They are compared as JSON: true is not 1."""
    if isinstance(value, bool):
        yield from (not value, int(value), str(value).lower())
    elif isinstance(value, int):
        yield from (value + 1, -value - 1, str(value), value * 10, [value], value + 0.5)
    elif isinstance(value, float):
        yield from (value + 1, str(value), [value])
    elif isinstance(value, str):
        yield from (f"{value}x", value[:-1] or "x", value.swapcase(), [value], f" {value}", None)
    elif value is None:
        yield from ("", "null", 0, False, {}, [])
    elif isinstance(value, list):
        yield from (
            value[::-1],
            value[:-1],
            [*value, *value[-1:]],
            [*value, None],
            [value],
            value[1:] + value[:1],
            sorted(value, key=str),
        )
        yield from ([*value[:i], other, *value[i + 1 :]] for i in range(len(value)) for other in variants(value[i]))
    elif isinstance(value, dict):
        yield from ({**value, "extra": 1}, list(value.values()), [value], {**value, "": None}, sorted(value))
        for key, member in value.items():
            rest = {name: item for name, item in value.items() if name != key}
            yield from (rest, {**rest, key.swapcase(): member}, {**rest, f"{key}_": member}, {**rest, key: None})
            yield from ({**value, key: other} for other in variants(member))


def changed(target: Target) -> Iterator[str]:
    """The reference with one value, type, key, or order changed."""
    value = reference(target)
    if value is not ...:
        right = json.dumps(value, sort_keys=True)
        yield from (json.dumps(other) for other in variants(value) if json.dumps(other, sort_keys=True) != right)


def malformed(target: Target) -> Iterator[str]:
    """What no JSON parser takes."""
    value = reference(target)
    if value is ...:
        return
    text = json.dumps(value)
    if isinstance(value, dict | list) and value:
        yield from (text[:-1], text[1:], f"{text[:-1]},{text[-1]}", f"{text}{text[-1]}", repr(value) + ";", text + ",")
    if isinstance(value, dict) and value:
        key = next(iter(value))
        yield f'{{{json.dumps(key)}: "other", {text[1:]}'  # a key that is there twice
        yield f"{text[:-1]}, {json.dumps(key)}: {json.dumps(value[key])}}}"
        yield text.replace('"', "'", 2)
    yield from (f"[{text}", f"not {text}", f"{text} // right", f"x = {text}")


def several(target: Target) -> Iterator[str]:
    """The reference and another document, in either order, or in a list."""
    value = reference(target)
    if value is ...:
        return
    text, other = json.dumps(value), json.dumps({"other": [value]})
    for between in ("\n", " ", ", ", "\n\n", " or "):
        yield from (f"{text}{between}{other}", f"{other}{between}{text}")
    yield from (f"[{text}, {other}]", f"[{other}, {text}]", f"{text}{text}", f"[{text}]")
    yield f"```json\n{text}\n```\n```json\n{other}\n```"


CLASSES = (
    refused(JSON, "value changed in one place", changed, "compare values with their types, keys and order of lists"),
    refused(JSON, "malformed document", malformed, "what a strict parser does not take is no answer"),
    refused(JSON, "several documents", several, "an answer with a second document is none"),
)
