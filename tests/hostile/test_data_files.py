"""Data: JSON lines, Parquet, saved data sets, and the tokenizer and chat template that rows are read with."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import pytest

from tests.hostile.cases import Case, End, chosen, seeded
from tests.hostile.ground import CHECKPOINT, checkpoint, written
from tests.hostile.mutations import VALUES, broken, json_texts, replacements

ROWS = [{"question": f"{n} + {n} = ?", "answer": f"so #{n + n}", "id": f"r{n}", "family": "sum"} for n in range(40)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
SPLITS = {"sft": 0.25, "train": 0.25, "dev": 0.25, "test": 0.25}
SETTINGS: dict[str, Any] = {
    "seed": 5,
    "data": {"splits": SPLITS, "validation": {"max_quarantined": 0.2}},
    "reward": {"verifier": {"kind": "exact", "marker": "#"}},
    "health": {"rules": {}},
}
LOADS = ("components.stages.data", "pyarrow.parquet", "pyarrow.ipc", "pandas")
COLUMNS = {"id": "id", "family": "family", "answer_pattern": "#(.+)$"}
TEMPLATES = {
    "unclosed": "{% for m in messages %}",
    "unknown-filter": "{{ messages | nothing }}",
    "unknown-name": "{{ nothing.a.b }}",
    "division": "{{ 1 / 0 }}",
    "endless": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{{ messages }}",
    "huge": "{{ 'x' * 3000000000 }}",
    "huge-number": "{{ 9 ** 9 ** 9 }}",
    "doubling": "{% set n = namespace(x='x') %}{% for i in range(40) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x }}",
    "recursion": "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
    "attributes": "{{ messages.__class__.__mro__[1].__subclasses__() }}",
    "format": "{{ '%1000000000d' | format(1) }}",
    "own-error": "{{ raise_exception('[red]no\\n') }}",
    "include": "{% include '/etc/passwd' %}",
    "import": "{% import 'os' as os %}{{ os.system('id') }}",
    "extends": "{% extends 'x' %}",
    "changes-messages": "{{ messages.append(1) }}",
    "loses-the-question": "hello",
    "empty": "",
    "deep": "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "nul": "{{ messages[0]['content'] }}\0",
    "break": "{% for a in messages %}{% break %}{% endfor %}",
    "time": "{{ strftime_now('%' * 100000) }}",
    "tojson": "{{ messages | tojson(indent=10**9) }}",
}


def staged(
    name: str, files: Mapping[str, Any], source: Mapping[str, Any], policy: Any = None, shown: object = ""
) -> Case:
    """Stage `data` over these files."""
    tree = {**SETTINGS, "data": {**SETTINGS["data"], "source": dict(source)}}
    if policy is not None:
        tree["policy"] = policy
    make = written({**files, "bad.yaml": tree})
    return Case(name, ("data", "--config", "{}/bad.yaml"), make, program="components", loads=LOADS, shown=shown)


def lines(name: str, data: bytes | str) -> Case:
    return staged(name, {"rows.jsonl": data}, {"kind": "jsonl", "path": "rows.jsonl", **COLUMNS}, shown=data)


def parquet(name: str, made: Callable[[], bytes]) -> Case:
    return staged(name, {"rows.parquet": made}, {"kind": "parquet", "path": "rows.parquet", **COLUMNS}, shown=name)


def saved(name: str, files: Mapping[str, Any], **source: Any) -> Case:
    placed = {f"set/{key}": value for key, value in files.items()}
    return staged(name, placed, {"kind": "arrow", "path": "set", **COLUMNS, **source}, shown=name)


@cache
def tables() -> dict[str, Any]:
    """Tables that are no table of questions and answers, by name."""
    import pyarrow as pa

    texts = {key: [str(row[key]) for row in ROWS] for key in ROWS[0]}
    plain, count = pa.table(texts), len(ROWS)

    def with_question(column: Any) -> Any:
        return plain.set_column(0, "question", column)

    return {
        "plain": plain,
        "numbers": with_question(pa.array(range(count))),
        "truth": with_question(pa.array([True] * count)),
        "null": with_question(pa.nulls(count)),
        "bytes": with_question(pa.array([b"\xff\xfe"] * count)),
        "not-utf8": with_question(pa.array([b"\xff\xfe"] * count).view(pa.string())),
        "lists": with_question(pa.array([["a", "b"]] * count)),
        "sections": with_question(pa.array([{"a": 1}] * count)),
        "decimals": with_question(pa.array([1] * count, pa.decimal128(38, 2))),
        "dictionary": with_question(pa.array(texts["question"]).dictionary_encode()),
        "durations": with_question(pa.array([2**62] * count, pa.duration("ns"))),
        "half-floats": with_question(pa.array([1.5] * count, pa.float64())),
        "not-finite": with_question(pa.array([float("nan"), float("inf")] * (count // 2))),
        "long-cells": with_question(pa.array(["x" * 300_000] * count)),
        "no-rows": plain.slice(0, 0),
        "no-columns": pa.table({}),
        "other-columns": plain.rename_columns(["a", "b", "c", "d"]),
        "same-columns": plain.rename_columns(["question", "question", "id", "family"]),
        "many-columns": pa.table({**texts, **{f"c{n}": texts["id"] for n in range(2000)}}),
        "one-row": plain.slice(0, 1),
        "same-rows": pa.concat_tables([plain.slice(0, 1)] * 500),
    }


def as_parquet(name: str) -> bytes:
    from pyarrow import parquet as format_

    sink = io.BytesIO()
    format_.write_table(tables()[name], sink)
    return sink.getvalue()


def as_arrow(name: str) -> bytes:
    import pyarrow

    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, tables()[name].schema) as stream:
        stream.write_table(tables()[name])
    return sink.getvalue()


TABLES = (
    *("plain", "numbers", "truth", "null", "bytes", "not-utf8", "lists", "sections", "decimals", "dictionary"),
    *("durations", "half-floats", "not-finite", "long-cells", "no-rows", "no-columns", "other-columns"),
    *("same-columns", "many-columns", "one-row", "same-rows"),
)
STATE = {"_data_files": [{"filename": "a.arrow"}], "_fingerprint": "x", "_split": None}
NAMES = ("../a.arrow", "/etc/passwd", "", ".", "a\0b", "x" * 300, "nothing.arrow", "state.json")


def cases() -> Iterator[Case]:
    for name, text in json_texts().items():
        yield lines(f"jsonl-all-{name}", text)
        yield lines(f"jsonl-one-{name}", LINES + text + "\n")
    for key, share in (("question", 1), ("answer", 2), ("id", 4), ("family", 4)):
        for name, value in list(VALUES.items())[::share]:
            yield lines(f"jsonl-{key}-{name}", LINES + json.dumps({**ROWS[0], "id": "own", key: value}) + "\n")
    for name, data in broken(LINES.encode(), seeded("lines"), 30):
        yield lines(f"jsonl-bytes-{name}", data)
    for name in TABLES:
        yield parquet(f"parquet-{name}", partial(as_parquet, name))
        yield saved(f"arrow-{name}", {"state.json": STATE, "a.arrow": partial(as_arrow, name)})
    for number in range(30):
        yield parquet(f"parquet-bytes-{number}", partial(_broken, as_parquet, number))
        yield saved(f"arrow-bytes-{number}", {"state.json": STATE, "a.arrow": partial(_broken, as_arrow, number)})
    yield from folders()
    yield from templates()


def _broken(make: Callable[[str], bytes], number: int) -> bytes:
    return list(broken(make("plain"), seeded("table", number), number + 1))[number][1]


def folders() -> Iterator[Case]:
    """Saved data sets whose own files are wrong."""
    for name, tree in replacements(STATE, seeded("state"), 4):
        yield saved(f"state-{name}", {"state.json": tree, "a.arrow": partial(as_arrow, "plain")})
    for name, text in list(json_texts().items())[::2]:
        yield saved(f"state-{name}", {"state.json": text, "a.arrow": partial(as_arrow, "plain")})
        yield saved(f"splits-{name}", {"dataset_dict.json": text, "state.json": STATE}, split="train")
    for number, name in enumerate(NAMES):
        yield saved(f"names-{number}", {"state.json": {"_data_files": [{"filename": name}]}})
        yield saved(
            f"split-{number}", {"dataset_dict.json": {"splits": [name]}, "state.json": STATE}, split=name or "x"
        )


def templates() -> Iterator[Case]:
    """Chat templates and tokenizers of the checkpoint that rows are read for."""
    policy = {"model": {"kind": "checkpoint", "path": "model"}, "chat": True}
    source = {"kind": "jsonl", "path": "rows.jsonl", **COLUMNS}

    def with_model(name: str, **changed: Any) -> Case:
        files = {**checkpoint(), **changed}
        placed = {f"model/{key.replace('__', '.')}": value for key, value in files.items() if value is not None}
        return staged(name, {**placed, "rows.jsonl": LINES}, source, policy, shown=changed)

    for name, text in TEMPLATES.items():
        yield with_model(f"template-{name}", chat_template__jinja=text)
    config = json.loads((CHECKPOINT / "tokenizer_config.json").read_text(encoding="utf-8"))
    for name, value in list(VALUES.items())[::2]:
        tree: Any = {**config, "chat_template": value}
        yield with_model(f"template-in-config-{name}", tokenizer_config__json=tree, chat_template__jinja=None)
    for name, tree in replacements(config, seeded("config"), 1):
        yield with_model(f"tokenizer-config-{name}", tokenizer_config__json=tree)
    for name, text in list(json_texts().items())[::2]:
        yield with_model(f"tokenizer-config-all-{name}", tokenizer_config__json=text)
        yield with_model(f"tokenizer-all-{name}", tokenizer__json=text)


@pytest.mark.parametrize("case", chosen(cases(), 0))
def test_bad_data_go_to_quarantine_or_are_refused(case: Case, hostile: Callable[[Case], End]) -> None:
    hostile(case)
