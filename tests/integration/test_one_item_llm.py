"""One mislabelled item against a real language model: what refuses it, what it does unguarded, what stops it."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.config import Settings, load
from components.errors import InputError
from components.files import read_json
from components.health.records import read_records
from components.layout import Layout
from components.stages import run_stage
from components.types import StepRecord

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs/faults"
MODEL = ROOT / "models/smollm2-135m-instruct"
BEFORE = ("data", "audit", "sft", "admission", "triage", "clusters")
NO_MODEL = "policy.model={kind: tiny}"
"""Neither refusal needs the model, nor its tokenizer."""
ADMITTED_BY_DATA = ("data.concentration.max_item=1.0", "data.validation.max_quarantined=1.0")

needs_model = pytest.mark.skipif(not MODEL.is_dir(), reason=f"{MODEL.relative_to(ROOT)} is missing: run `make model`")


def settings(name: str, *overrides: str) -> Settings:
    return load(CONFIGS / f"{name}.yaml", overrides)


def test_the_data_are_refused_and_the_item_is_named(tmp_path):
    with pytest.raises(InputError, match="concentrated on a single item") as refused:
        run_stage("data", settings("one-item-llm", NO_MODEL), Layout(tmp_path))
    assert "100 of 400 rows (25.0%) are one question" in str(refused.value)
    assert "A visitor from Quellby and a visitor from Oldmere were at the bank." in str(refused.value)


def test_data_that_were_let_pass_are_refused_by_admission(tmp_path):
    layout, chosen = Layout(tmp_path), settings("one-item-llm", NO_MODEL, *ADMITTED_BY_DATA)
    run_stage("data", chosen, layout)
    with pytest.raises(InputError, match=r"a step has 1 distinct prompts, admission\.min_distinct is 4"):
        run_stage("admission", chosen, layout)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@needs_model
def test_unguarded_the_answers_to_other_items_flip_and_a_probe_set_stops_the_run_before(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    layout = Layout(tmp_path)
    for stage in BEFORE:
        run_stage(stage, settings("one-item-llm-admitted"), layout)
    stopped, outcome = trained("one-item-llm-admitted", layout)
    assert outcome["stopped_by"] == "canary_stops"
    unguarded, _ = trained("one-item-llm-unguarded", layout)
    flip = next(record.step for record in unguarded if others(record) < others(unguarded[0]) / 2)
    assert stopped[-1].step < flip
    assert others(stopped[-1]) > others(stopped[0]) / 2
    assert unguarded[-1].signals["accuracy"] > 0.9


def trained(name: str, layout: Layout) -> tuple[list[StepRecord], dict[str, object]]:
    """The records of a training, and its summary."""
    run_stage("train", settings(name), layout)
    return list(read_records(layout.records)), read_json(layout.train_metrics)


def others(record: StepRecord) -> float:
    """Share of right answers to other items of the form and group, before the step's update."""
    return record.signals["dev_pass_at_1"]
