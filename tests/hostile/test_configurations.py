"""Configurations: every setting with values that it must not have, YAML that is none, and YAML that means trouble."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.hostile.cases import Case, End, chosen, sample, seeded
from tests.hostile.ground import configured, settings
from tests.hostile.mutations import broken, replacements, reshaped

TEXTS: dict[str, str | bytes] = {
    "nothing": "",
    "list": "- 1\n- 2\n",
    "text": "word",
    "two-documents": "name: a\n---\nname: b\n",
    "same-key": "seed: 1\nseed: 2\n",
    "equal-keys": "1: a\ntrue: b\n1.0: c\n",
    "key-of-a-list": "? [a]\n: 1\n",
    "key-of-a-section": "? {a: 1}\n: 1\n",
    "key-null": "~: 1\n",
    "key-nan": "{.nan: 1, .nan: 2}",
    "tab": "data:\n\tsource: 1\n",
    "bad-indent": "data:\n  source: 1\n source: 2\n",
    "unclosed": "data: {source: [1, 2\n",
    "unclosed-quote": 'name: "x\n',
    "bad-escape": 'name: "\\q"\n',
    "nul-escape": 'name: "a\\0b"\n',
    "surrogate-escape": 'name: "\\ud800"\n',
    "nul": b"name: a\0b\n",
    "not-utf8": b"name: \xff\xfe\n",
    "utf16": "name: a\n".encode("utf-16"),
    "utf32": "name: a\n".encode("utf-32"),
    "mark": b"\xef\xbb\xbfname: a\n",
    "control": "name: a\x07\n",
    "python-object": "name: !!python/object/apply:os.system [id]\n",
    "python-name": "name: !!python/name:os.system\n",
    "own-tag": "name: !thing x\n",
    "tag-of-root": "!!set {a, b}\n",
    "timestamp-none": "name: !!timestamp x\n",
    "timestamp-odd": "name: !!timestamp 2026-99-99\n",
    "bool-none": "seed: !!bool x\n",
    "bool-empty": "seed: !!bool\n",
    "int-none": "seed: !!int x\n",
    "int-empty": "seed: !!int ''\n",
    "int-section": "seed: !!int {a: 1}\n",
    "int-sign": "seed: !!int '-'\n",
    "float-none": "seed: !!float x\n",
    "float-empty": "seed: !!float ''\n",
    "null-section": "seed: !!null {a: 1}\n",
    "str-section": "name: !!str {a: 1}\n",
    "binary-none": "name: !!binary '*'\n",
    "binary": "name: !!binary AAAA\n",
    "set": "data: !!set {a, b}\n",
    "omap": "data: !!omap [a: 1]\n",
    "omap-none": "data: !!omap 7\n",
    "pairs": "data: !!pairs [a: 1, a: 2]\n",
    "pairs-none": "data: !!pairs {a: 1}\n",
    "map-none": "data: !!map 7\n",
    "seq-none": "data: !!seq 7\n",
    "merge": "a: &a {seed: 1}\n<<: *a\n",
    "merge-none": "<<: 7\n",
    "value-key": "data: {=: 1}\n",
    "alias-none": "data: *nothing\n",
    "alias-circle": "data: &a {source: *a}\n",
    "alias-circle-list": "extends: &a [*a]\n",
    "alias-bomb": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{n}: &{n} [{','.join(['*' + o] * 9)}]\n" for o, n in zip("abcdefgh", "bcdefghi", strict=True)),
    "alias-bomb-in-a-setting": "data: {source: &a {x: &b {y: &c {z: 1}}}}\nrollout: {a: [*a, *a], b: [*b, *c]}\n",
    "anchor-twice": "a: &a 1\nb: &a 2\nseed: *a\n",
    "deep-lists": "name: " + "[" * 5000 + "\n",
    "deep-sections": "name: " + "{a: " * 5000 + "\n",
    "deep-blocks": "".join(" " * n + "a:\n" for n in range(1000)),
    "deep-dashes": "- " * 5000 + "a\n",
    "many-keys": "".join(f"key-{n}: {n}\n" for n in range(60_000)),
    "many-items": "extends: [" + "a," * 200_000 + "]\n",
    "long-key": "k" * 100_000 + ": 1\n",
    "long-line": "name: " + "x" * 900_000 + "\n",
    "too-large": "# " + "x" * 2**20 + "\n",
    "directive": "%YAML 9.9\n---\nname: a\n",
    "directive-none": "%NOTHING x\nname: a\n",
    "tag-directive": "%TAG ! tag:yaml.org,2002:python/\n---\nname: !name:os.system\n",
    "octal": "seed: 010\n",
    "sexagesimal": "seed: 1:30\n",
    "long-number": "seed: " + "9" * 6000 + "\n",
    "long-hexadecimal": "seed: 0x" + "f" * 6000 + "\n",
    "huge-exponent": "learner: {lr: 1e999999999}\n",
    "extends-itself": "extends: bad.yaml\n",
    "extends-nothing": "extends: nothing.yaml\n",
    "extends-a-folder": "extends: .\n",
    "extends-a-device": "extends: /dev/zero\n",
    "extends-the-kernel": "extends: /proc/self/mem\n",
    "extends-a-long-name": f"extends: {'x' * 5000}\n",
    "extends-a-nul": 'extends: "a\\0b"\n',
    "extends-a-number": "extends: 7\n",
    "extends-sections": "extends: [{a: 1}]\n",
    "extends-many": "extends: [" + ", ".join(["nothing.yaml"] * 2000) + "]\n",
    "rules-file-above": "health: {rules_file: ../../../../../../etc/passwd}\n",
    "rules-file-long": f"health: {{rules_file: {'x' * 300}}}\n",
    "rules-file-nul": 'health: {rules_file: "a\\0b"}\n',
    "rules-none": "health: {rules: 7}\n",
    "rules-empty": "health: {rules: {}}\n",
}
DRY = ("run", "--dry-run")


def cases() -> Iterator[Case]:
    """Of every setting two values; what settles a plan or a run, with the commands that make one."""
    for name, text in TEXTS.items():
        yield configured(f"yaml-{name}", text, shown=text)
    everything = settings("demo")
    for name, tree in replacements(everything, seeded("demo"), 2):
        yield configured(name, tree)
    for name, tree in reshaped(everything, seeded("shape"), 80):
        yield configured(name, tree)
    for name, tree in replacements({"launch": settings("kubernetes")["launch"]}, seeded("kubernetes"), 1):
        yield configured(f"kubernetes-{name}", tree)
    rollout = {key: settings("local-processes")[key] for key in ("rollout", "learner")}
    for name, tree in replacements(rollout, seeded("processes"), 1):
        yield configured(f"processes-{name}", tree)
    source = "".join(f"{name}: {value!r}\n" for name, value in (("name", "a"), ("seed", 7), ("threads", 1)))
    source += "data: {source: {kind: generated, task: arithmetic, rows: 100}}\nextends: [demo.yaml]\n"
    for name, data in broken(source.encode(), seeded("bytes"), 60):
        yield configured(f"bytes-{name}", data, shown=data)
    for name, tree in sample(list(replacements(everything, seeded("dry"), 1)), 30, "dry"):
        yield configured(f"dry-{name}", tree, *DRY)
    large = {key: settings("demo")[key] for key in ("policy", "rollout", "learner", "train")}
    for name, tree in sample(list(replacements(large, seeded("plan"), 1)), 30, "plan"):
        yield configured(f"plan-{name}", tree, "plan", loads=("flows.display.memory_plan",))
    for name, tree in sample(list(replacements(everything, seeded("history"), 1)), 20, "history"):
        yield configured(f"history-{name}", tree, "history")


FOUND = ("yaml-bool-none", "yaml-bool-empty")


@pytest.mark.parametrize("case", chosen(cases(), 12, FOUND))
def test_a_bad_configuration_is_refused_and_nothing_else(case: Case, hostile: Callable[[Case], End]) -> None:
    hostile(case)
