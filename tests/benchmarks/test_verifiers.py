"""Checks a second of each verifier through its sandbox, batched, with the default limits: `make bench`. It only prints.

A worker remembers the references and answers that it has parsed, so a group of completions for one prompt is cheaper
than as many prompts.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator

import pytest
from rich.console import Console
from rich.table import Table

from components.config.answers import CodeVerifier, JsonVerifier, MathVerifier, MultipleChoiceVerifier
from components.config.base import Section
from components.config.sandbox import SandboxSettings
from components.config.verifiers import ExactVerifier, NumericVerifier
from components.rewards.sandbox import Sandbox
from components.types import Prompt

Item = tuple[Prompt, str]


def items(count: int, answer: Callable[[int], str], text: Callable[[int], str]) -> Iterator[Item]:
    for i in range(count):
        yield Prompt(str(i), "What is it?", answer(i), ""), f"Because of the above.\n{text(i)}"


CASES: dict[str, tuple[Section, Iterator[Item]]] = {
    "exact": (ExactVerifier(), items(10_000, str, lambda i: f"#{i}")),
    "numeric": (NumericVerifier(kind="numeric"), items(10_000, str, lambda i: f"#### {i}.0")),
    "math, numbers": (MathVerifier(kind="math"), items(10_000, str, lambda i: rf"\boxed{{{i}.0}}")),
    "math, fractions": (
        MathVerifier(kind="math"), items(1000, lambda i: f"{i}/7", lambda i: rf"\boxed{{\frac{{{2 * i}}}{{14}}}}"),
    ),
    "math, symbolic, groups of 8": (
        MathVerifier(kind="math"),
        items(800, lambda i: f"{i // 8 + 2}x^2+7", lambda i: rf"\boxed{{7 + {i // 8 + 2}x^{{2}} + {i % 8} - {i % 8}}}"),
    ),
    "math, symbolic, all different": (
        MathVerifier(kind="math"),
        items(400, lambda i: f"{i + 2}x^2+{i}", lambda i: rf"\boxed{{{i} + {i + 2}x^{{2}}}}"),
    ),
    "math, to be simplified": (
        MathVerifier(kind="math"),
        items(100, lambda i: f"x^2-{(i + 2) ** 2}", lambda i: rf"\boxed{{(x-{i + 2})(x+{i + 2})}}"),
    ),
    "multiple choice": (
        MultipleChoiceVerifier(kind="multiple_choice"),
        items(10_000, lambda i: "ABCDE"[i % 5], lambda i: f"The answer is {'ABCDE'[i % 5]}"),
    ),
    "json": (
        JsonVerifier(kind="json", marker="####"),
        items(10_000, lambda i: f'{{"a": {i}}}', lambda i: f'#### {{"a":{i}}}'),
    ),
    "code": (
        CodeVerifier(kind="code"),
        items(200, lambda i: f"assert f({i}) == {i + 1}", lambda i: "```python\ndef f(x): return x + 1\n```"),
    ),
}  # fmt: skip


def run(settings: Section, batch: list[Item]) -> tuple[float, float, float]:
    """Seconds after the workers have started, their processor time from start to end, and the share that is right."""
    before = processor_seconds()
    with Sandbox(settings, SandboxSettings()) as sandbox:
        sandbox.judge(batch[:2])
        began = time.monotonic()
        scores = sandbox.judge(batch)
        seconds = time.monotonic() - began
    return seconds, processor_seconds() - before, sum(score.accuracy == 1.0 for score in scores) / len(scores)


def processor_seconds() -> float:
    """What ended workers have used; the processes that `code` forks are not among them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.timeout(1800)
def test_checks_a_second() -> None:
    """Processor time a check, in addition to the rate: on a busy machine only the former means something."""
    table = Table("verifier", "checks", "checks a second", "processor time a check, ms", "right", title="two workers")
    for name, (settings, made) in CASES.items():
        batch = list(made)
        _, start, _ = run(settings, batch[:2])
        seconds, used, right = run(settings, batch)
        each = 1e3 * (used - start) / len(batch)
        table.add_row(name, str(len(batch)), f"{len(batch) / seconds:,.0f}", f"{each:.2f}", f"{right:.0%}")
    Console().print(table)
