"""Patterns in JSON schemas are run by RE2: no answer stalls a verifier, and what cannot be used is refused with the
settings."""

from __future__ import annotations

import time
from typing import Any

import pytest
from jsonschema.validators import Draft7Validator, Draft202012Validator

from components.config import load
from components.errors import InputError
from components.rewards.json_answer import build
from tests.code_graph import ROOT

SLOW = "^(a+)+$"
"""Python's engine doubles its time with every letter that is followed by none."""
LONG = "a" * 5000 + "!"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": SLOW}, LONG),
        ({"patternProperties": {SLOW: False}, "additionalProperties": False}, {LONG: 1}),
        ({"propertyNames": {"pattern": SLOW}}, {LONG: 1}),
        ({"additionalProperties": False, "patternProperties": {"^b$": {}, SLOW: {}}}, {LONG: 1}),
        ({"items": {"properties": {"x": {"pattern": SLOW}}}}, [{"x": LONG}]),
    ],
)
def test_an_answer_that_would_stall_python_is_refused_at_once(schema: dict[str, Any], value: Any) -> None:
    start = time.process_time()
    assert not build(schema).is_valid(value)
    assert time.process_time() - start < 2


SCHEMAS: tuple[dict[str, Any], ...] = (
    {"pattern": r"^\d+$"},
    {"patternProperties": {"^a": {"type": "integer"}}},
    {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False},
    {"properties": {"b": {}}, "patternProperties": {"^a": {}}, "additionalProperties": {"type": "string"}},
    {"additionalProperties": False, "properties": {"b": {}}},
    {"additionalProperties": {}, "properties": {"pattern": {"const": {"pattern": "("}}}},
)
VALUES: tuple[Any, ...] = ("12", "x", 3, {}, {"a": 1}, {"a": "1"}, {"b": 1}, {"b": 1, "c": "x"}, {"c": 1}, [1])


@pytest.mark.parametrize("draft", [Draft7Validator, Draft202012Validator])
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_the_answer_is_that_of_the_library(schema: dict[str, Any], draft: Any) -> None:
    named = {"$schema": draft.META_SCHEMA["$schema"], **schema}
    ours, theirs = build(named), draft(named)
    assert [ours.is_valid(value) for value in VALUES] == [theirs.is_valid(value) for value in VALUES]
    paths = [[[*error.absolute_path] for error in one.iter_errors({"a": "1", "c": 1})] for one in (ours, theirs)]
    assert paths[0] == paths[1]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{properties: {a: {pattern: '('}}}", "no regular expression"),
        ("{pattern: '(?=a)'}", "looks around"),
        ("{patternProperties: {'(a)\\1': {}}}", "refers back"),
        ("{type: 1}", "no JSON schema, at type"),
        ("{patternProperties: {a: {}}, unevaluatedProperties: false}", "write additionalProperties instead"),
        ("{maximum: .inf}", "JSON does not have this"),
        ("{properties: {1: {}}}", "a name is text, not 1"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_the_settings(schema: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load(ROOT / "configs/demo.yaml", [f"reward.verifier={{kind: json, json_schema: {schema}}}"])
    assert "reward.verifier.json.json_schema" in caught.value.what
    assert said in caught.value.what
