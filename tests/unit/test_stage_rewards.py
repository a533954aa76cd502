"""The recipes P4IR and CORA through the stages, at a size at which nothing is learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.config import Settings, load, pin_inputs
from components.files import read_json, read_jsonl, write_json
from components.layout import Layout
from components.stages import run_stage
from tests.unit.kept_workers import kept_workers

ROOT = Path(__file__).parents[2]
MICRO = (
    "data.splits={sft: 0.3, train: 0.3, dev: 0.2, test: 0.2}",
    "policy.model={kind: tiny, hidden_size: 32, layers: 1, heads: 2, kv_heads: 1, head_dim: 16, intermediate_size: 32}",
    "sft={steps: 3, batch_size: 4, warmup: 1, checkpoint_every: 2}",
    "reward.sandbox.workers=1",
    "audit={prompts: 40, repeats: 2, max_false_positive: 0.1}",
    "admission.min_distinct=4",
    "triage={prompts: 4, samples: 4, override: nothing is learned at this size}",
    "clusters={k: 2, components: 4}",
    "schedule={kind: uniform}",
    "rollout.group_size=4",
    "rollout.two_stage=null",
    "rollout.max_new_tokens=6",
    "train={steps: 2, prompts_per_step: 4, eval_every: 1, eval_prompts: 2, eval_samples: 2, checkpoint_every: 2}",
    "evaluation={prompts: 4, samples: 2, bootstrap: 100}",
    "health.rules={}",
)


@pytest.fixture(scope="module", autouse=True)
def _workers() -> Iterator[None]:
    with kept_workers():
        yield


def line(root: Path, settings: Settings) -> Layout:
    layout = Layout(root)
    for stage in ("data", "audit", "sft", "admission", "triage", "clusters", "train", "evaluate"):
        run_stage(stage, settings, layout)
    return layout


def figures(layout: Layout) -> tuple[dict[str, float], dict[str, Any]]:
    """The signals of the last step, and the evaluation of the trained policy."""
    return list(read_jsonl(layout.records))[-1]["signals"], read_json(layout.evaluation)["trained"]


@pytest.fixture(scope="module")
def cora(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, Layout]:
    root = tmp_path_factory.mktemp("cora")
    tree = {"extends": str(ROOT / "configs/recipes/cora.yaml"), "health": {"rules": {}}}
    write_json(root / "cora.yaml", tree)  # JSON is YAML
    settings = load(root / "cora.yaml", ["data.source.rows=200", *MICRO])
    return settings, line(root, settings)


def test_cora_has_its_consistency_in_the_record_of_a_step_and_on_held_out_prompts(cora):
    signals, trained = figures(cora[1])
    assert 0 <= signals["part_consistency"] <= 1
    assert signals["metric_consistency_missing"] == 0
    assert set(trained["parts"]) == {"consistency"}
    assert read_json(cora[1].validation)["consistency"]["auc"] > 0.8


def test_another_classifier_is_another_run(cora):
    settings, layout = cora
    before = read_json(layout.state / "train" / "identity.json")
    weights = read_json(layout.consistency)
    weights["model"]["intercept"] += 1
    write_json(layout.consistency, weights)
    run_stage("train", settings, layout)
    assert read_json(layout.state / "train" / "identity.json") != before


@pytest.mark.slow
def test_p4ir_rewards_overlap_and_only_measures_distances(tmp_path):
    layout = line(tmp_path, load(ROOT / "configs/p4ir.yaml", ["data.source.rows=200", *MICRO]))
    signals, trained = figures(layout)
    parts = {"jaccard_class", "jaccard_function", "jaccard_parameter"}
    metrics = {"parsed", "too_large", "jaccard", "tree_edit_distance", "levenshtein"}
    assert set(trained["parts"]) == parts
    assert set(trained["metrics"]) == metrics
    assert {f"part_{name}" for name in parts} | {f"metric_{name}" for name in metrics} <= signals.keys()
    assert signals["reward"] == pytest.approx(sum(signals[f"part_{name}"] for name in parts))
    assert read_json(layout.consistency) == {"model": None}


OWN = """
def brief(completions, of, **columns):
    return [-len(text) / of for text in completions]


def named(completion_ids, completions, family):
    assert len(completion_ids) == len(completions) == len(family)
    return [1.0 if text.isdigit() else None for text in completions]
"""


def test_functions_from_outside_are_parts_of_every_step_and_of_the_evaluation(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    functions = (
        "reward.functions={brief: {target: 'mine:brief', settings: {of: 100}}, "
        "digits: {target: 'mine:named', weight: -1}}"
    )
    advantage = "objective.advantage={kind: gdpo, weights: {brief: 0.5}}"
    parts = (functions, advantage, "reward.soft_overlong=null")
    canaries = ("carries", "comparison", "layout", "names")
    without = ("evaluation.suites.more_digits=null", *(f"health.canaries.{name}=null" for name in canaries))
    overrides = ["data.source.rows=200", *MICRO, *parts, *without]
    layout = line(tmp_path, pin_inputs(load(ROOT / "configs/demo.yaml", overrides)))
    signals, trained = figures(layout)
    assert -1 < signals["part_brief"] < 0 and -1 <= signals["part_digits"] <= 0
    assert 0 <= signals["metric_digits_missing"] <= 1
    assert signals["shaping"] == pytest.approx(signals["part_brief"] + signals["part_digits"])
    assert set(trained["parts"]) == {"brief", "digits"}
    assert read_json(layout.audit)["verdict"] == "pass"
    assert {row["function"] for row in read_json(layout.audit)["functions"]} == {"brief", "digits", "all together"}
    (tmp_path / "mine.py").write_text(OWN.replace("-len", "len"), encoding="utf-8")
    changed = pin_inputs(load(ROOT / "configs/demo.yaml", overrides))
    before = read_json(layout.state / "train" / "identity.json")
    run_stage("train", changed, layout)
    assert read_json(layout.state / "train" / "identity.json") != before
