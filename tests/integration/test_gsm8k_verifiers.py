"""Every gold answer of GSM8K is right, and every one of another question wrong, for both verifiers that can read it."""

from __future__ import annotations

import json
import os
import random
import time
from fractions import Fraction
from pathlib import Path

import pytest

from components.config.answers import MathVerifier
from components.config.sandbox import SandboxSettings
from components.config.verifiers import NumericVerifier
from components.rewards.sandbox import Sandbox
from components.types import Prompt
from tests.code_graph import ROOT

pytestmark = pytest.mark.integration
PLACES = (os.environ.get("EVENKEEL_GSM8K"), ROOT / "data/gsm8k_train.jsonl", ROOT / "../shared/data/gsm8k_train.jsonl")


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    found = next((Path(place) for place in PLACES if place and Path(place).is_file()), None)
    if found is None:
        pytest.skip("GSM8K is not on this machine: set EVENKEEL_GSM8K to gsm8k_train.jsonl")
    rows = [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]
    return [
        Prompt(str(i), row["question"], row["answer"].rpartition("####")[2].strip(), row["answer"])
        for i, row in enumerate(rows)
    ]


def value(prompt: Prompt) -> Fraction:
    return Fraction(prompt.answer.replace(",", "").replace("$", ""))


def of_another_question(prompts: list[Prompt], seed: int) -> list[str]:
    """The solution of the first row, from a seeded distance on, whose answer is another number."""
    count, start = len(prompts), random.Random(seed).randrange(1, len(prompts))
    values = [value(prompt) for prompt in prompts]
    others = []
    for i in range(count):
        distance = next(d for d in range(start, start + count) if values[(i + d) % count] != values[i])
        others.append(prompts[(i + distance) % count].solution)
    return others


@pytest.mark.parametrize(
    "settings", [NumericVerifier(kind="numeric"), MathVerifier(kind="math", marker="####")], ids=lambda s: s.kind
)
def test_all_gold_answers_are_right_and_all_shuffled_ones_wrong(prompts: list[Prompt], settings: object) -> None:
    assert len(prompts) == 7473
    with Sandbox(settings, SandboxSettings()) as sandbox:  # type: ignore[arg-type]
        began = time.monotonic()
        gold = sandbox.judge([(prompt, prompt.solution) for prompt in prompts])
        others = sandbox.judge(list(zip(prompts, of_another_question(prompts, 0), strict=True)))
        seconds = time.monotonic() - began
    print(f"\n{type(settings).__name__}: {2 * len(prompts) / seconds:.0f} checks a second")
    assert [p.answer for p, score in zip(prompts, gold, strict=True) if score.accuracy != 1.0] == []
    assert [p.answer for p, score in zip(prompts, others, strict=True) if score.accuracy != 0.0] == []
