"""Health logs of any trainer, the mappings of their names, and health rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.code_graph import ROOT
from tests.hostile.cases import Case, End, chosen, sample, seeded
from tests.hostile.ground import written
from tests.hostile.mutations import VALUES, broken, json_texts, replacements, reshaped

FORMATS = ("auto", "trl", "verl", "prime-rl", "openrlhf", "nemo-rl", "slime", "jsonl")
HISTORY: list[dict[str, Any]] = [
    {"step": n, "epoch": n / 10, "loss": 0.1, "reward": 0.5, "kl": 0.01 * n, "entropy": 1.0, "grad_norm": 0.3}
    for n in range(1, 12)
]
STATE = {"best_metric": None, "global_step": 11, "max_steps": 11, "log_history": HISTORY, "is_local_process_zero": True}
LINES = "".join(json.dumps(row) + "\n" for row in HISTORY)
VERL = "".join(
    f"step:{n} - actor/entropy:{9 / (n + 1):.3f} - actor/grad_norm:0.3 - critic/rewards/mean:0.5\n" for n in range(9)
)
PRINTED = "".join(f"{{'loss': 0.1, 'reward': '{n / 9:.2f}', 'kl': nan, 'epoch': 0.1}}\n" for n in range(9))
NEMO = "".join(f"=== Step {n}/9 ===\n  • Loss: 0.1\n  • Avg Reward: 0.5\n" for n in range(1, 9))
PRIME = "".join(f"10:00:0{n} SUCCESS Step {n} | Time: 9.1s | Reward: 0.5 | Entropy: 0.3\n" for n in range(9))
FORMS = {
    "trl": json.dumps(STATE), "jsonl": LINES, "verl": VERL, "prime-rl": PRIME, "openrlhf": PRINTED, "nemo-rl": NEMO,
}  # fmt: skip
TEXTS = {
    **json_texts(),
    "no-steps": '{"loss": 1}\n' * 20,
    "steps-backwards": "".join(f'{{"step": {n}, "loss": 1}}\n' for n in range(20, 0, -1)),
    "one-step-often": '{"step": 1, "loss": 1}\n' * 20_000,
    "steps-of-text": '{"step": "x", "loss": 1}\n' * 20,
    "steps-of-halves": "".join(f'{{"step": {n / 2}, "loss": 1}}\n' for n in range(20)),
    "huge-steps": "".join(f'{{"step": {10**n}, "loss": 1}}\n' for n in range(40)),
    "far-apart": '{"step": 0, "loss": 1}\n{"step": 9007199254740993, "loss": 2}\n',
    "negative-steps": "".join(f'{{"step": -{n}, "loss": 1}}\n' for n in range(20)),
    "values-of-lists": "".join(f'{{"step": {n}, "loss": [1, 2], "kl": {{"a": 1}}}}\n' for n in range(20)),
    "values-not-finite": "".join(f'{{"step": {n}, "loss": NaN, "kl": Infinity}}\n' for n in range(20)),
    "values-huge": "".join(f'{{"step": {n}, "loss": 1e308, "kl": -1e308}}\n' for n in range(20)),
    "values-tiny": "".join(f'{{"step": {n}, "loss": 5e-324, "kl": 0}}\n' for n in range(20)),
    "values-of-many-digits": '{"step": 1, "loss": ' + "9" * 4000 + "}\n",
    "many-names": "".join(json.dumps({"step": n, **{f"m{m}": m for m in range(5000)}}) + "\n" for n in range(5)),
    "long-names": json.dumps({"step": 1, "x" * 100_000: 1}) + "\n",
    "odd-names": json.dumps({"step": 1, "": 1, "\0": 2, "\u001b[31m": 3, "a.b/c": 4, "[red]": 5}) + "\n",
    "console-repeats": "step:" * 100_000,
    "console-no-values": "step:1 - a: - b:x - :3\n" * 50,
    "console-spaces": " " * 500_000 + "\n",
    "console-bars": "|" * 200_000 + "\n",
    "console-numbers": "step:1 - a:" + "1" * 100_000 + "\n",
    "console-dots": "step:1 - a:" + "1." * 50_000 + "\n",
    "dictionary-open": "{'loss': 0.1, " * 50_000,
    "dictionary-quotes": "{'" + "'" * 300_000 + "\n",
    "dictionary-numbers": "{'loss': " + "1" * 100_000 + "}\n",
    "dictionary-names": "{'" + "x" * 300_000 + "': 1}\n",
    "dictionary-code": "{'loss': __import__('os').system('true'), 'reward': 1}\n" * 9,
    "headings": "=== Step 1/2 ===\n" * 20_000 + "  • " + "a" * 100_000 + ": 1\n",
    "escapes": "\x1b[31mstep:1\x1b[0m - a:1\n" * 20,
    "returns": LINES.replace("\n", "\r"),
    "windows": LINES.replace("\n", "\r\n"),
    "history-number": '{"log_history": 7}',
    "history-of-lists": '{"log_history": [[1], [2]]}',
    "history-empty": '{"log_history": []}',
    "history-section": '{"log_history": {"step": 1}}',
}
MAPPING = yaml.safe_load((ROOT / "configs/health/names/trl.yaml").read_text(encoding="utf-8"))
RULES = yaml.safe_load((ROOT / "configs/health/default.yaml").read_text(encoding="utf-8"))
CONDITIONS = (
    *(
        "",
        " ",
        "1",
        "x",
        "True",
        "loss >",
        "(",
        "loss > 1 and",
        "__import__('os').system('id')",
        "().__class__",
        "[1, 2]",
    ),
    *(
        "loss.__class__",
        "lambda: 1",
        "9**9**9 > 1",
        "'a' * 10**9",
        "loss > 1 or " * 300 + "loss > 2",
        "(" * 300 + "1" + ")" * 300,
    ),
    *(
        "mean(loss, 10**9) > 1",
        "mean(loss, -1) > 1",
        "mean(loss, 0) > 1",
        "mean(loss, loss) > 1",
        "mean() > 1",
        "mean(1, 2) > 1",
    ),
    *(
        "nothing(loss, 2) > 1",
        "nan > loss",
        "loss / 0 > 1",
        "1 / 0",
        "loss > 1e999",
        "loss % 0 == 0",
        "loss ** 1e9 > 1",
        "-" * 3000 + "loss",
    ),
    *(
        "loss > '1'",
        "loss == None",
        "loss if loss else loss",
        "{1: 2}",
        "loss; loss",
        "loss := 1",
        "f'{loss}'",
        "loss > 1 # x",
        "loss\n> 1",
        "\0",
    ),
)


def audited(name: str, content: Any, format: str = "auto", *more: str, **files: Any) -> Case:
    made = written({"log.json": content, **{f"{key}.yaml": value for key, value in files.items()}})
    shown = content if isinstance(content, str | bytes) else files
    return Case(name, ("audit", "{}/log.json", "--format", format, *more), made, shown=shown)


def ruled(name: str, tree: Any, *command: str) -> Case:
    return Case(name, (*(command or ("rules",)), "{}/rules.yaml"), written({"rules.yaml": tree, "log.json": LINES}))


def cases() -> Iterator[Case]:
    for number, (name, text) in enumerate(TEXTS.items()):
        yield audited(name, text)
        yield audited(f"{name}-as-{FORMATS[1 + number % 4]}", text, FORMATS[1 + number % 4])
    for name, tree in replacements(STATE, seeded("state"), 1):
        yield audited(f"trl-{name}", tree)
    for name, tree in reshaped(STATE, seeded("state"), 30):
        yield audited(f"trl-{name}", tree)
    for name, value in VALUES.items():
        rows = [{**row, "loss": value} for row in HISTORY]
        yield audited(f"every-loss-{name}", {**STATE, "log_history": rows})
    for format, text in FORMS.items():
        for name, data in broken(text.encode(), seeded(format), 30):
            yield audited(f"{format}-{name}", data, format if name.startswith("f") else "auto")
    for name, tree in (*replacements(MAPPING, seeded("names"), 1), *reshaped(MAPPING, seeded("names"), 20)):
        yield audited(f"names-{name}", LINES, "auto", "--names", "{}/names.yaml", names=tree)
    yield from rules()
    for path in (
        "/dev/zero",
        "/dev/null",
        "/proc/self/mem",
        "/proc/self/fd/0",
        ".",
        "/",
        "nothing",
        "a/b",
        "",
        "x" * 300,
    ):
        yield Case(f"log-at-{path[:20]}", ("audit", path))
        yield Case(f"rules-at-{path[:20]}", ("rules", path))


def rules() -> Iterator[Case]:
    """Files of rules: every setting of one rule, some of the others, and conditions."""
    first = next(iter(RULES["rules"]))
    for name, tree in replacements({"rules": {first: RULES["rules"][first]}}, seeded("rule"), 5):
        yield ruled(f"rule-{name}", tree)
    for name, tree in sample(list(replacements(RULES, seeded("rules"), 1)), 60, "rules"):
        yield ruled(f"rules-{name}", tree)
    for name, tree in sample(list(reshaped(RULES, seeded("rules"), 60)), 30, "shapes"):
        yield ruled(f"rules-{name}", tree, "audit", "{}/log.json", "--rules")
    for number, text in enumerate(CONDITIONS):
        rule = {**RULES["rules"][first], "when": text}
        yield ruled(
            f"when-{number}",
            {"rules": {first: rule}},
            *sample(["rules", "audit {}/log.json --rules"], 1, text)[0].split(),
        )


@pytest.mark.parametrize("case", chosen(cases(), 8))
def test_a_bad_log_or_rule_is_refused_or_read(case: Case, hostile: Callable[[Case], End]) -> None:
    hostile(case)
