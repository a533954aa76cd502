"""Every setting by its dotted path: what it may be, its default, and what it does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from components.config import Settings
from flows.manual.commands import table

Schema = Mapping[str, Any]
HEADS = ("setting", "values", "default", "meaning")
ABOUT = """## Settings

A configuration file names what differs from these defaults; `--set A.B=VALUE` replaces one setting. `NAME` stands for a
name of your choice, `[]` for an entry of a list. `evenkeel params` prints all settings of a configuration, resolved.
"""
LONGEST = 80
"""Characters of a default that are shown."""


def settings() -> Iterator[str]:
    """Lines of the section: a heading a section, sections of sections below it."""
    schema = Settings.model_json_schema()
    yield ABOUT
    yield from _Pages(schema).section("", {"$ref": ""})


class _Pages:
    """What is left to write; ``seen`` is where a section that occurs at several places has its table."""

    def __init__(self, root: Schema) -> None:
        self._definitions = {**root["$defs"], "": root}
        self._seen: dict[str, str] = {}

    def section(self, path: str, schema: Schema) -> Iterator[str]:
        """The table of a section, then those of the sections in it."""
        name = schema["$ref"].rpartition("/")[2]
        definition = self._definitions[name]
        title = f"`{path}`{self._kind(definition)}" if path else "The top level"
        yield f"{'###' if '.' not in path else '####'} {title}\n"
        if (first := self._seen.setdefault(name, title)) != title:
            yield f"As {first}.\n"
            return
        if path:
            yield f"{_first(definition)}\n"
        properties = definition.get("properties", {})
        required = definition.get("required", ())
        rows = [self._row(path, key, one, key in required) for key, one in properties.items() if "const" not in one]
        if rows:
            yield table(HEADS, rows)
        for key, one in properties.items():
            for suffix, below in self._below(one):
                yield from self.section(f"{path}.{key}{suffix}".lstrip("."), below)

    def _kind(self, definition: Schema) -> str:
        """What chooses this one of several sections."""
        said = ((key, definition.get("properties", {}).get(key, {}).get("const")) for key in ("kind", "task"))
        return "".join(f", `{key}: {value}`" for key, value in said if value is not None)

    def _below(self, schema: Schema) -> Iterator[tuple[str, Schema]]:
        """The sections that a value may be, or may hold."""
        if "$ref" in schema:
            if "properties" in self._definitions[schema["$ref"].rpartition("/")[2]]:
                yield "", schema
            return
        for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            yield from self._below(one)
        for suffix, inside in (("[]", schema.get("items")), (".NAME", _named(schema))):
            if isinstance(inside, Mapping):
                yield from ((f"{suffix}{rest}", below) for rest, below in self._below(inside))

    def _row(self, path: str, key: str, schema: Schema, required: bool) -> tuple[str, str, str, str]:
        values, default = self._values(schema), "required" if required else _shown(schema.get("default", {}))
        about = schema.get("description", "")
        below = list(self._below(schema))
        if len(below) == 1:
            (suffix, one), *_ = below
            definition = self._definitions[one["$ref"].rpartition("/")[2]]
            title = f"{path}.{key}{suffix}".lstrip(".") + self._kind(definition)
            anchor = re.sub(r"[^a-z_ -]", "", title.lower()).replace(" ", "-")
            values = values.replace("section", f"[section](#{anchor})")
            about = about or _first(definition)
        return f"`{key}`", values, default, about

    def _values(self, schema: Schema) -> str:
        """What a setting may be."""
        if "$ref" in schema:
            definition = self._definitions[schema["$ref"].rpartition("/")[2]]
            return "section" if "properties" in definition else self._values(definition)
        if found := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
            return " or ".join(dict.fromkeys(self._values(one) for one in found))
        if "enum" in schema or "const" in schema:
            return ", ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
        if schema.get("type") == "array":
            each: Schema = schema.get("items") or next(iter(schema.get("prefixItems", ())), {})
            return f"list of {self._values(each)}"
        if isinstance(inside := _named(schema), Mapping):
            return f"name -> {self._values(inside)}"
        return " ".join(filter(None, (str(schema.get("type", "any")), _bounds(schema))))


def _named(schema: Schema) -> Any:
    """The schema of the values of a mapping; they have one where names must have a form, too."""
    return next(iter(schema.get("patternProperties", {}).values()), schema.get("additionalProperties"))


def _first(definition: Schema) -> str:
    """The first paragraph of what a section says of itself."""
    return " ".join(definition.get("description", "").partition("\n\n")[0].split())


def _shown(default: Any) -> str:
    """A default; of a section what chooses it."""
    if isinstance(default, dict):
        return f"`kind: {default['kind']}`" if "kind" in default else ""
    text = json.dumps(default, ensure_ascii=False)
    return f"`{text}`" if len(text) <= LONGEST else f"`{text[:LONGEST]}`…"


def _bounds(schema: Schema) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return ", ".join(f"{sign} {schema[key]}" for key, sign in signs.items() if key in schema)
