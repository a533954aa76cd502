"""Right when the answer is JSON and equals the reference; optionally it must also follow a schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from components.config.schemas import check_schema
from components.patterns import compile_pattern
from components.rewards.answers import depth
from components.rewards.base import Judgement, JudgingVerifier, Refused, final_answer
from components.types import Prompt

_OPENING = re.compile(r"```(?:json)?\s*+", re.IGNORECASE)
_CLOSING = re.compile(r"```[^\S\n]*+$", re.MULTILINE)
"""At the end of a line: a string may hold three backticks."""
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""Brackets in one open and close nothing."""


def build(schema: Mapping[str, Any]) -> Any:
    """The validator of a schema, by the draft that it names. Nothing is fetched. RE2 runs its patterns: Python's own
    engine takes exponential time for some texts.

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


class JsonVerifier(JudgingVerifier):
    """Compares values: the order of keys and the writing of numbers and strings do not count, ``true`` is not 1.

    The answer follows the last ``marker``, in a fenced block or not. What is longer than ``max_chars``, nested deeper
    than ``max_depth``, says a key twice or says NaN is no JSON here. Parts, with ``structure``: ``parsed`` and, with
    a ``json_schema``, ``schema`` (1 where the answer follows it).
    """

    def __init__(
        self, marker: str, json_schema: dict[str, Any] | None, structure: bool, max_chars: int, max_depth: int
    ) -> None:
        self.marker, self._schema, self._structure = marker, json_schema, structure
        self._max_chars, self._max_depth = max_chars, max_depth
        self._validator: Any = None

    def prepare(self) -> None:
        if self._schema is not None:
            self._validator = build(self._schema)

    def judge(self, prompt: Prompt, text: str) -> Judgement:
        """Raises Refused when the reference is no JSON: nothing could be right then."""
        try:
            wanted = self._read(prompt.answer)
        except ValueError as error:
            raise Refused(f"the reference is not JSON: {error}") from error
        try:
            found = self._read(_unfenced(final_answer(text, self.marker)))
        except ValueError:
            return self._judgement(False, False, False)
        return self._judgement(canonical(found) == canonical(wanted), True, self._follows(found))

    def equivalents(self, prompt: Prompt) -> dict[str, str]:
        try:
            value = self._read(prompt.answer)
        except ValueError:
            return {}
        forms = {
            "indented": json.dumps(value, indent=2),
            "compact, ASCII": json.dumps(value, separators=(",", ":")),
            "keys sorted": json.dumps(value, sort_keys=True, ensure_ascii=False),
            "fenced": f"\n```json\n{json.dumps(value)}\n```\n",
        }
        return {name: self.wrap(form) for name, form in forms.items()}

    def _judgement(self, same: bool, parsed: bool, follows: bool) -> Judgement:
        parts = {"parsed": float(parsed), **({} if self._schema is None else {"schema": float(follows)})}
        right = float(same and (self._schema is None or follows))
        return Judgement(right, parts) if self._structure else Judgement(right, metrics=parts)

    def _follows(self, value: Any) -> bool:
        if self._schema is not None and self._validator is None:
            self.prepare()
        return self._validator is None or self._validator.is_valid(value)

    def _read(self, answer: str | None) -> Any:
        if answer is None or len(answer) > self._max_chars:
            raise ValueError("there is none, or it is too long")
        if depth(_STRING.sub("", answer)) > self._max_depth:
            raise ValueError("it is nested too deep")
        try:
            return json.loads(answer, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite)
        except RecursionError as error:
            raise ValueError("it is nested too deep") from error


def canonical(value: Any) -> Any:
    """Equal for equal JSON values: Python takes True for 1."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items()}
    return [canonical(item) for item in value] if isinstance(value, list) else value


def _unfenced(answer: str | None) -> str | None:
    """What the last fenced block holds; the answer itself where there is none."""
    if answer is None:
        return None
    found, at = answer, 0
    while (opening := _OPENING.search(answer, at)) and (closing := _CLOSING.search(answer, opening.end())):
        found, at = answer[opening.end() : closing.start()], closing.end()
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number that is too large")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
