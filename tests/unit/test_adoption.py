"""A checkpoint that another trainer made: what of its folder is taken, and what its log shows to the gate."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from passing_run import FEW, layout, whole
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

from components.adoption import adopt_checkpoint, adopt_log
from components.config import Settings, dump, load
from components.config.judgement import RuleSettings
from components.config.training import Adopted
from components.errors import InputError
from components.files import read_json, write_json, write_jsonl, write_text
from components.gate.candidate import judge_candidate
from components.gate.checks.health import elsewhere
from components.health.readers.names import NAMES_FOLDER, load_names
from components.layout import Layout
from components.policy import load_policy
from components.registry.directory import DirectoryStore
from components.stages.gate import run as run_gate
from tests.proposals import key_in, policy_of, propose_run, write_lock
from tests.unit.factories import policy, settings

__all__ = ["layout", "whole"]
SETTINGS = settings()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    policy().save(folder)
    return folder


def adapter(base: Path, folder: Path, **changes: Any) -> PeftModel:
    """An adapter as `peft` writes one, whose B is not 0."""
    config = LoraConfig(r=4, lora_alpha=6, target_modules=["q_proj", "down_proj"], **changes)
    model = get_peft_model(load_policy(base, SETTINGS.policy).model, config)
    torch.manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_()
    model.save_pretrained(str(folder))
    return model


# --- the folder


def test_of_a_folder_only_the_checkpoint_is_taken_and_pickles_are_not_opened(base: Path) -> None:
    left = base.parent / "checkpoint-20"
    policy().save(left)
    for name in ("optimizer.pt", "training_args.bin"):
        (left / name).write_bytes(b"cposix\nsystem\n(S'false'\ntR.")
    found, left_out = adopt_checkpoint(left, base, SETTINGS)
    assert left_out == ["optimizer.pt", "training_args.bin"]
    assert all(torch.equal(weight, found.weights()[name]) for name, weight in policy().weights().items())


@pytest.mark.parametrize("changes", [{}, {"use_rslora": True}, {"init_lora_weights": "orthogonal"}])
def test_an_adapter_is_merged_as_peft_merges_it(base: Path, changes: dict[str, Any]) -> None:
    theirs = adapter(base, base.parent / "adapter", **changes).merge_and_unload()
    found, left_out = adopt_checkpoint(base.parent / "adapter", base, SETTINGS)
    assert left_out == ["README.md"]
    for name, weight in theirs.named_parameters():
        torch.testing.assert_close(found.weights()[name], weight.detach())


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"use_dora": True}, "use_dora: True"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"megatron_config": {"a": 1}, "megatron_core": "os"}, "megatron_config"),
        ({"peft_type": "IA3"}, "peft_type: 'IA3'"),
        ({"r": 0}, "r is 0"),
        ({"init_lora_weights": "pissa_niter_4"}, "init_lora_weights: 'pissa_niter_4'"),
        ({"alora_invocation_tokens": [1, 2]}, "alora_invocation_tokens"),
        ({"use_qalora": True}, "use_qalora: True"),
    ],
)
def test_an_adapter_that_is_more_than_a_plain_lora_is_refused(base: Path, changed: dict[str, Any], named: str) -> None:
    adapter(base, folder := base.parent / "adapter")
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | changed))
    with pytest.raises(InputError, match="no plain LoRA") as caught:
        adopt_checkpoint(folder, base, SETTINGS)
    assert named in caught.value.what
    assert "merge_and_unload" in (caught.value.how or "")


def half_of_a_pair(tensors: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    yield next((name, one) for name, one in tensors.items() if "lora_A" in name)


def another_width(tensors: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    yield from ((name, torch.ones(4, 3) if "lora_A" in name else one) for name, one in tensors.items())


def not_finite(tensors: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    yield from ((name, one * float("nan")) for name, one in tensors.items())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: {}, "holds no weights"),
        (half_of_a_pair, "the adapter has A for"),
        (another_width, "B @ A of"),
        (not_finite, "not finite"),
    ],
)
def test_an_adapter_that_does_not_fit_the_base_is_refused(base: Path, change: Any, said: str) -> None:
    adapter(base, folder := base.parent / "adapter")
    file = folder / "adapter_model.safetensors"
    save_file(dict(change(load_file(file))), file)
    with pytest.raises(InputError, match=said):
        adopt_checkpoint(folder, base, SETTINGS)


def test_a_checkpoint_of_another_base_is_refused_with_the_weight_that_differs(base: Path) -> None:
    other = policy()
    other.model.resize_token_embeddings(other.embedded + 8)
    other.save(base.parent / "other")
    with pytest.raises(InputError, match="did not begin with this base"):
        adopt_checkpoint(base.parent / "other", base, SETTINGS)


# --- its log


def trl_log(folder: Path, rows: list[dict[str, float]]) -> Adopted:
    """The state of TRL's trainer with these metrics, one mapping a step."""
    history = [{"step": number, **row} for number, row in enumerate(rows, start=1)]
    path = folder / "trainer_state.json"
    path.write_text(json.dumps({"log_history": history, "global_step": len(rows)}))
    return Adopted.model_validate({"checkpoint": {"path": folder}, "log": {"path": path, "format": "trl"}})


def step(entropy: float = 1.0) -> dict[str, float]:
    return {"loss": 0.1, "reward": 0.5, "entropy": entropy, "grad_norm": 1.0}


def test_the_log_becomes_records_with_the_verdicts_of_each_step(tmp_path: Path) -> None:
    found = adopt_log(trl_log(tmp_path, [step(), step(float("nan")), step(0.1)]), FEW)
    assert [row["step"] for row in found.rows] == [1, 2, 3]
    assert [row["notes"].get("not_finite") for row in found.rows] == [None, ["entropy"], None]
    assert "entropy" not in found.rows[1]["signals"]
    assert found.trainer.startswith("TRL")


def test_a_mapping_in_the_settings_reads_names_that_no_trainer_has(tmp_path: Path) -> None:
    mine = tmp_path / "names.yaml"
    mine.write_text(f"extends: {NAMES_FOLDER / 'trl.yaml'}\nsignals: {{accuracy: rewards/mine/mean}}\n")
    written = trl_log(tmp_path, [step() | {"rewards/mine/mean": 0.25}])
    mapped = written.model_copy(update={"names": load_names(mine).model_dump(mode="json")})
    (record,) = adopt_log(mapped, FEW).records
    assert (record.signals["accuracy"], record.signals["entropy"]) == (0.25, 1.0)
    with pytest.raises(InputError, match="unknown signal 'acuracy'"):
        adopt_log(written.model_copy(update={"names": {"signals": {"acuracy": "reward"}}}), FEW)


# --- the gate


def adopted(layout: Layout, rows: list[dict[str, float]]) -> Settings:
    """The passing run as if its training were that of a log."""
    found = adopt_log(trl_log(layout.root, rows), FEW)
    write_jsonl(layout.records, found.rows)
    write_jsonl(layout.train / "verdicts.jsonl", [verdict.to_dict() for verdict in found.verdicts])
    write_jsonl(layout.ledger, [])
    ended = {"outcome": "adopted", "steps": len(rows), "progress": len(rows)}
    write_json(layout.train_metrics, {**read_json(layout.train_metrics), **ended})
    params = load(layout.params)
    section = {"checkpoint": {"path": "inputs/ab/checkpoint"}, "log": {"path": "inputs/cd/trainer_state.json"}}
    changed = params.model_copy(
        update={"train": params.train.model_copy(update={"adopted": Adopted.model_validate(section)})}
    )
    write_text(layout.params, dump(changed))
    run_gate(changed, layout)
    write_lock(layout)
    return changed


def judged(layout: Layout, tmp_path: Path, **policy: Any) -> dict[str, str]:
    """What does not pass by the policy, each with its result."""
    store = DirectoryStore(tmp_path / "registry")
    candidate = propose_run(store, layout, key_in(tmp_path))
    found = judge_candidate(store, candidate, replace(policy_of(key_in(tmp_path), **policy), rules=FEW), None)
    return {check.name: check.result for check in found.checks if check.result != "pass"}


LEFT = {"training health", "training completed", "health by policy"}


def test_what_the_log_does_not_show_is_left_to_a_person(layout: Layout, tmp_path: Path) -> None:
    adopted(layout, [step()] * 5)
    gate = read_json(layout.gate)
    assert gate["result"] == "inconclusive"
    assert {one["name"] for one in gate["checks"] if one["result"] == "inconclusive"} == LEFT - {"health by policy"}
    (health,) = (one["evidence"] for one in gate["checks"] if one["name"] == "training health")
    assert f"of {len(FEW)} rules could judge its log" in health
    assert judged(layout, tmp_path) == dict.fromkeys(LEFT, "inconclusive")


def test_a_policy_says_which_of_it_a_person_may_accept(layout: Layout, tmp_path: Path) -> None:
    adopted(layout, [step()] * 5)
    found = judged(layout, tmp_path, adopted=("training completed",))
    assert found == {"training health": "fail", "health by policy": "fail", "training completed": "inconclusive"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([step(), step(float("inf"))], "entropy not finite in the log at step 2"),
        ([step(), step() | {"loss": float("nan")}], "at step 2"),
    ],
)
def test_what_the_log_shows_to_be_broken_fails(layout: Layout, rows: list[dict[str, float]], said: str) -> None:
    adopted(layout, rows)
    failed = {one["name"]: one["evidence"] for one in read_json(layout.gate)["checks"] if one["result"] == "fail"}
    assert list(failed) == ["training health"]
    assert said in failed["training health"]


def test_a_grave_verdict_on_the_log_fails_and_a_warning_does_not(tmp_path: Path) -> None:
    records = adopt_log(trl_log(tmp_path, [step(), step(0.1)]), {}).records
    grave = {"low": RuleSettings(when="entropy < 0.5", level="stop", why="low")}
    assert elsewhere(grave, records)[0] == "fail"
    result, said = elsewhere(FEW, records)
    assert (result, "entropy_low (warn, step 2)" in said) == ("inconclusive", True)
