"""The audit of reward functions: which pay for wrong answers, for nothing, fail or change their mind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import pytest

from components.audit.functions import TOGETHER, Payment, findings, measure_functions, remarks
from components.audit.probes import make_probes
from components.config import load
from components.config.reward import RewardSettings
from components.files import read_json, read_text, write_jsonl
from components.layout import Layout
from components.rewards.base import ExactVerifier
from components.rewards.sandbox import Sandbox
from components.stages import audit as stage
from components.types import Completion, Prompt
from tests.code_graph import ROOT
from tests.unit.kept_workers import kept_workers

PROMPTS = [Prompt(f"p{i}", f"{i}+{i}=", str(2 * i), f"{i}+{i}={2 * i}#{2 * i}") for i in range(2, 12)]
Function = Callable[[list[str], int], list[float | None] | str]
"""Values of texts; the number counts the calls."""


class Bare:
    """Functions without a fence, in the place of a sandbox."""

    def __init__(self, functions: dict[str, Function]) -> None:
        self._functions, self._calls = functions, 0

    def values(self, calls: Sequence[tuple[str, Prompt, Sequence[Completion]]]) -> list[list[float | None] | str]:
        found = []
        for name, _, completions in calls:
            self._calls += 1
            found.append(self._functions[name]([one.text for one in completions], self._calls))
        return found


FUNCTIONS: dict[str, Function] = {
    "brief": lambda texts, _: [max(0.0, 1 - len(text) / 100) for text in texts],
    "long": lambda texts, _: [float(len(text)) for text in texts],
    "mute": lambda texts, _: [float(text == "") for text in texts],
    "flat": lambda texts, _: [5.0] * len(texts),
    "fragile": lambda texts, _: "error: it fell over" if "" in texts else [1.0] * len(texts),
    "moody": lambda texts, calls: [float(calls)] * len(texts),
    "adjacent": lambda texts, _: [None] * len(texts),
}


def audited(weights: dict[str, float] | None = None, **named: str) -> list[Payment]:
    """What is paid by functions of these names, each of which is one of `FUNCTIONS`."""
    weights, functions = weights or {}, {name: FUNCTIONS[one] for name, one in named.items()}
    own = {name: {"target": "mine:f", "weight": weights.get(name, 1.0)} for name in functions}
    settings = RewardSettings.model_validate({"functions": own})
    bare = cast(Sandbox, Bare(functions))
    return measure_functions(make_probes(ExactVerifier("#"), PROMPTS), settings, lambda: nullcontext(bare))


def test_a_part_that_the_accuracy_does_not_make_up_for_is_found_with_the_sort_of_answer():
    found = list(findings(audited(long="long"), 0.02))
    junk = next(one for one in found if "hack: huge junk" in one)
    assert junk.startswith(
        "reward.functions.long: in 10 of 10 pairs of one sort it paid 10000 for a wrong answer and 7"
    )
    assert not any("hack: empty" in one for one in found)


@pytest.mark.parametrize(("weight", "sorts"), [(0.0001, 0), (-1.0, 1)])
def test_the_weight_counts_with_its_sign(weight, sorts):
    found = findings(audited({"long": weight}, long="long"), 0.02)
    assert len([one for one in found if "empty" in one or "junk" in one]) == sorts


def test_what_pays_more_for_nothing_than_for_the_right_answer_is_noted_and_no_finding():
    payments = audited({"brief": 0.2}, brief="brief")
    assert list(findings(payments, 0.02)) == []
    noted = list(remarks(payments))
    assert any(
        "paid more for what says nothing (hack: empty) than for the right answer, at most 0.2" in one for one in noted
    )
    assert not any("huge junk" in one for one in noted)


def test_what_is_paid_for_everything_or_does_not_apply_is_neither_found_nor_noted():
    payments = audited(flat="flat", adjacent="adjacent")
    assert list(findings(payments, 0.02)) == [] and list(remarks(payments)) == []


def test_parts_that_are_sound_alone_and_outbid_the_accuracy_together_are_found():
    (found,) = findings(audited({"one": 0.9, "two": 0.9}, one="mute", two="mute", three="flat"), 0.02)
    assert found.startswith("reward.functions: in 10 of 10 pairs of one sort it paid 6.8 for a wrong answer and 5 for")


def test_a_call_that_fails_is_found_with_its_reason():
    payments = audited(fragile="fragile")
    (found,) = findings(payments, 0.02)
    assert "it failed (error: it fell over) (hack: empty)" in found


def test_values_that_change_are_found():
    payments = audited(moody="moody")
    assert all("returned something else when called again" in one for one in findings(payments, 0.02))
    assert sum(one.unstable for one in payments if one.function != TOGETHER) == sum(one.pairs for one in payments)


def test_the_stage_tries_them_behind_the_fence_and_says_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.py").write_text(
        "def count(completion_ids, **columns):\n    return [len(ids) for ids in completion_ids]\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    layout = Layout(tmp_path)
    for split in ("train", "dev", "test"):
        write_jsonl(layout.split(split), [prompt.to_dict() for prompt in PROMPTS if split == "train"])
    functions = "reward.functions={count: {target: 'mine:count'}}"
    settings = load(ROOT / "configs/demo.yaml", [functions, "audit.repeats=2", "reward.sandbox.workers=1"])
    with kept_workers():
        stage.run(settings, layout)
    audit = read_json(layout.audit)
    assert audit["verdict"] == "fail" and any("reward.functions.count" in one for one in audit["reasons"])
    page = read_text(layout.audit_page)
    assert "Functions of the reward" in page and "hack: huge junk" in page
