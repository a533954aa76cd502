"""``--set``: texts that are no override, names that are no setting, and values that are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.code_graph import ROOT
from tests.hostile.cases import Case, End, chosen, seeded
from tests.hostile.ground import settings
from tests.hostile.mutations import leaves, spelled

TEXTS = {
    "empty": "",
    "equals": "=",
    "no-name": "=1",
    "no-value": "seed",
    "dots": "...=1",
    "leading-dot": ".seed=1",
    "trailing-dot": "seed.=1",
    "two-dots": "data..source=1",
    "space": " seed = 1 ",
    "two-equals": "seed==1",
    "nothing-known": "nothing=1",
    "below-a-value": "seed.a.b=1",
    "below-a-list": "sft.a=1",
    "hyphens": "--set=1",
    "option": "--config=x",
    "glob": "*=1",
    "index": "data[0]=1",
    "class": "__class__.__init__=1",
    "not-utf8": "seed=\udcff\udcfe",
    "long-name": "a" * 50_000 + "=1",
    "long-path": "a." * 20_000 + "b=1",
    "long-value": "name=" + "x" * 100_000,
    "line-break": "seed=1\nname=x",
    "documents": "seed=1\n---\n2",
    "tag": "name=!!python/object/apply:os.system [id]",
    "unclosed": "data={source: [1",
    "brackets": "name=" + "[" * 5000,
    "braces": "name=" + "{a: " * 5000,
    "date": "name=2026-01-01",
    "time": "name=2026-01-01 10:00:00",
    "date-by-tag": "name=!!timestamp x",
    "whole": "data=1",
    "whole-null": "data=null",
    "whole-list": "data=[]",
    "alias": "data=&a {source: *a}",
    "alias-none": "name=*a",
    "extends": "extends=x.yaml",
    "rules": "health.rules=null",
    "rules-file": "health.rules_file=../../../etc/passwd",
    "kind-none": "schedule={kind: nothing}",
    "kind-number": "schedule.kind=7",
    "kind-list": "schedule.kind=[a]",
    "merge": "data={<<: {source: 1}}",
    "same-key": "data={source: 1, source: 2}",
    "number-of-400-digits": "seed=" + "9" * 400,
    "float-of-400-digits": "learner.lr=0." + "9" * 400,
    "exponent": "learner.lr=1e400",
}
VALUES = (
    *("", "null", "true", "-1", "0", "1e400", ".nan", "-.inf", "9223372036854775807", "'7'", "x", "[]", "{}"),
    *("{a: {b: {c: 1}}}", "[[[[]]]]", "{kind: x}", "{kind: null}", "/dev/zero", "../../../x", "'a\\0b'", '"a\\0b"'),
    *("!!int x", "!!bool x", "!!float x", "!!map 1", "!!seq 1", "!!set {a}", "*a", "&a", "|", ">-", "? ", "- ", "%x"),
    *("@x", "`x", "!", "!<>", "!!", "0x", "0o7", "010", "1_000", "1:30", "~", "yes", "<<", "=", '"\\ud800"', "\t", "#"),
)
OPTION = "--config", str(ROOT / "configs/demo.yaml")


def cases() -> Iterator[Case]:
    for name, text in TEXTS.items():
        yield Case(name, ("params", *OPTION, "--set", text), shown=text)
    rng, names = seeded("overrides"), [spelled(at) for at in leaves(settings("demo"))]
    for number in range(250):
        text = f"{rng.choice(names)}={VALUES[number % len(VALUES)]}"
        yield Case(f"{number}-{text}", ("params", *OPTION, "--set", text), shown=text)
    for number in range(50):
        texts = [f"{rng.choice(names)}={rng.choice(VALUES)}" for _ in range(4)]
        arguments = [word for text in texts for word in ("--set", text)]
        yield Case(f"several-{number}", ("params", *OPTION, *arguments), shown=texts)


@pytest.mark.parametrize("case", chosen(cases(), 6))
def test_a_bad_override_is_refused_and_nothing_else(case: Case, hostile: Callable[[Case], End]) -> None:
    hostile(case)
