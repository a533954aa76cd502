"""JSON schemas in settings: sound ones, whose patterns run in time that grows with the text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from components.patterns import compile_pattern

DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are no schemas, whatever they hold."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no JSON schema, or has a pattern that RE2 does not run.

    Raises:
        ValueError: what is wrong, and where in the schema.
    """
    from jsonschema import FormatChecker  # where there is a schema, so that settings load without it
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    check_json(schema)
    try:
        validator_for(schema).check_schema(schema, FormatChecker(()))  # no formats: these take a pattern for Python's
    except (SchemaError, RecursionError) as error:
        place = "/".join(map(str, error.absolute_path)) if isinstance(error, SchemaError) else ""
        said = error.message if isinstance(error, SchemaError) else "it is nested too deeply"
        raise ValueError(f"no JSON schema{f', at {place}' if place else ''}: {said}") from error
    for pattern in patterns(schema):
        compile_pattern(pattern)


def check_json(value: Any) -> None:
    """Refuse what JSON does not have: infinities, and names that are no text.

    Raises:
        ValueError: there is such a thing.
    """
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise ValueError(f"JSON does not have this: {error}") from error
    if bad := [key for node in _nodes(value) for key in node if not isinstance(key, str)]:
        raise ValueError(f"a name is text, not {bad[0]!r}: quote it")


def patterns(schema: Any) -> Iterator[str]:
    """Every pattern in a schema: those of ``pattern``, and the names under ``patternProperties``.

    Raises:
        ValueError: ``unevaluatedProperties`` stands together with ``patternProperties``, which goes through Python's
            own engine.
    """
    found = list(_nodes(schema))
    named = [node["patternProperties"] for node in found if isinstance(node.get("patternProperties"), Mapping)]
    if named and any("unevaluatedProperties" in node for node in found):
        raise ValueError("patternProperties with unevaluatedProperties is not read: write additionalProperties instead")
    yield from (node["pattern"] for node in found if isinstance(node.get("pattern"), str))
    yield from (name for names in named for name in names)


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """All mappings in a schema. Names of properties are taken for keywords too: their values distinguish them."""
    if isinstance(schema, Mapping):
        yield schema
        for key, value in schema.items():
            if key not in DATA:
                yield from _nodes(value)
    elif isinstance(schema, list | tuple):
        for item in schema:
            yield from _nodes(item)
