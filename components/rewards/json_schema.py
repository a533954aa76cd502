"""JSON schemas whose patterns RE2 runs: Python's own engine takes exponential time for some texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.config.schemas import check_schema
from components.patterns import compile_pattern


def build(schema: Mapping[str, Any]) -> Any:
    """The validator of a schema, by the draft that it names. Nothing is fetched.

    Raises:
        ValueError: it is no schema, or has a pattern that RE2 does not run.
    """
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    check_schema(schema)
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    return extend(validator_for(schema), keywords)(schema, registry=Registry())


def _pattern(validator: Any, pattern: str, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if validator.is_type(value, "string") and not compile_pattern(pattern).matches(value):
        yield _error(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, named: Mapping[str, Any], value: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    if validator.is_type(value, "object"):
        for pattern, below in named.items():
            for name in _matching(value, pattern):
                yield from validator.descend(value[name], below, path=name, schema_path=pattern)


def _additional_properties(validator: Any, below: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    if not validator.is_type(value, "object"):
        return
    known = set(schema.get("properties", ()))
    known.update(name for pattern in schema.get("patternProperties", ()) for name in _matching(value, pattern))
    more = [name for name in value if name not in known]
    if validator.is_type(below, "object"):
        for name in more:
            yield from validator.descend(value[name], below, path=name)
    elif below is False and more:
        yield _error(f"additional properties: {', '.join(map(repr, more))}")


def _matching(value: Mapping[str, Any], pattern: str) -> list[str]:
    compiled = compile_pattern(pattern)
    return [name for name in value if compiled.matches(name)]


def _error(said: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(said)
