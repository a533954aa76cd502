"""What fits, which setting helps, and what `run`, `launch` and `plan` say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import LlamaConfig

from components.config import Settings, load
from components.errors import InputError
from components.planning import fit
from components.planning.fit import Room, changed, helps, lacks, planned, variants
from components.planning.least import check_run, pod_needs, rank_state
from components.planning.passes import GIB
from components.planning.processes import CUDA
from components.planning.shapes import Shape
from flows.cli import main as evenkeel
from flows.cli.plan import amount
from tests.code_graph import ROOT
from tests.unit.test_processes_memory import BILLION, checkpoint

SHAPE = Shape("LlamaForCausalLM", {"MLP": BILLION}, BILLION, 0, True, 10, 10**8, 10**6, 1024, 16, 4, 64, 4096, 1000)
ADAPTED = Shape(
    "LlamaForCausalLM", {"MLP": BILLION}, 10**6, 9 * 10**8, True, 10, 10**8, 10**6, 1024, 16, 4, 64, 4096, 1000
)
CLUSTER = ROOT / "configs/kubernetes.yaml"


def shape_of(settings: Settings) -> Shape:
    return SHAPE if settings.policy.lora is None else ADAPTED


def ranks(kind: str, count: int, **learner: Any) -> Settings:
    sections = {"learner": {"kind": kind, "ranks": {"processes": count}, **learner}, "launch": {"kind": "processes"}}
    return Settings.model_validate(sections)


def lacking(settings: Settings, room: Room) -> list[fit.Lack]:
    return lacks(settings, planned(settings, shape_of, room, 16), room)


def test_a_gpu_that_is_too_small_is_named_with_both_figures_and_the_moment():
    (first, others) = lacking(ranks("deepspeed", 8), Room(gpu=4 * GIB))
    assert (first.what, others.what) == ("rank 0, backward: a GPU", "ranks 1 to 7, backward: a GPU")
    assert first.needed > first.there == 4 * GIB
    assert lacking(ranks("deepspeed", 8), Room(gpu=80 * GIB)) == []


def test_one_machine_holds_all_processes_at_once():
    alone = planned(ranks("fsdp2", 2), shape_of, Room(), 16)
    needed, moment = fit.together(alone)
    assert needed == sum(one.count * one.at(moment) for one in alone)
    assert [lack.what for lack in lacking(ranks("fsdp2", 2), Room(machine=needed - 1))] == [f"this machine, {moment}"]
    assert lacking(ranks("fsdp2", 2), Room(machine=needed)) == []


def test_settings_that_fit_are_named_and_no_other():
    room, chosen = Room(gpu=10 * GIB), ranks("deepspeed", 8, compute_dtype="float32")
    found = helps(chosen, shape_of, room, 16)
    named = {one.setting for one in found}
    assert found and all(one.fits for one in found)
    assert {"policy.lora={rank: 16, alpha: 32}", "learner.compute_dtype=bfloat16"} <= named
    assert helps(ranks("deepspeed", 8), shape_of, room, 16) == []  # auto is bfloat16 on a GPU
    for text, other in variants(chosen):
        assert (text in named) == (lacking(other, room) == []), text


def test_where_no_setting_is_enough_the_best_one_is_named():
    (best,) = helps(ranks("deepspeed", 8), shape_of, Room(gpu=5 * GIB), 16)
    assert not best.fits
    assert 0 < best.share < 1
    assert helps(ranks("fsdp2", 8), shape_of, Room(gpu=80 * GIB), 16) == []


def test_a_model_that_one_rank_cannot_hold_fits_on_more_of_them():
    needed = [lacking(ranks("fsdp2", count), Room(gpu=GIB // 2))[0].needed for count in (2, 8, 64)]
    assert needed == sorted(needed, reverse=True)
    assert needed[2] < 4 * BILLION + CUDA < needed[0]


def test_settings_that_do_not_go_together_are_never_offered():
    chosen = load(CLUSTER)
    assert changed(chosen, {"learner": {"routing_replay": True, "activation_checkpointing": True}}) is None


# What is refused before it begins


def run_on(cluster: dict[str, Any], folder: Path, **sections: Any) -> Settings:
    chosen = load(CLUSTER).model_dump()
    chosen["launch"]["kubernetes"] |= cluster
    chosen["policy"]["model"] = {"kind": "checkpoint", "path": str(folder)}
    return Settings.model_validate({**chosen, **sections})


def test_a_pod_that_cannot_hold_its_part_is_refused_with_what_helps(tmp_path):
    folder = checkpoint(tmp_path / "large")
    small = run_on({"learner": {"memory": "4Gi"}}, folder)
    with pytest.raises(InputError) as caught:
        check_run(small, ["train"])
    said = "the first pod of the learner, with 1 of its ranks, needs at least 11.2 GiB, and has 4.0 GiB (1,000,000,000"
    assert said in caught.value.what
    assert caught.value.where == "launch.kubernetes.learner.memory"
    assert "evenkeel plan" in str(caught.value.how)


def test_pods_are_compared_with_weights_gradients_and_moments_alone(tmp_path):
    chosen = run_on({"learner": {"memory": "64Gi", "processes": 2}}, tmp_path)
    chosen = chosen.model_copy(update={"learner": ranks("deepspeed", 4).learner})
    assert chosen.launch.kubernetes is not None
    needs = {need.what: need.needed for need in pod_needs(chosen, chosen.launch.kubernetes, BILLION)}
    assert needs["the first pod of the learner, with 2 of its ranks,"] == 2 * (4 + 16 / 4) * BILLION


@pytest.mark.parametrize(
    ("kind", "count", "learner", "expected"),
    [
        ("fsdp2", 2, {}, 8),
        ("fsdp2", 64, {}, 0.25),
        ("deepspeed", 8, {"zero": {"stage": 2}}, 4 + 2),
        ("deepspeed", 8, {"zero": {"stage": 2}, "compute_dtype": "bfloat16"}, 2 + 2),
        ("deepspeed", 2, {"zero": {"stage": 3}}, 8),
    ],
)
def test_the_least_that_a_rank_holds_for_each_parameter(kind, count, learner, expected):
    assert rank_state(ranks(kind, count, **learner), on_gpu=False) == expected


def test_a_gpu_is_compared_where_the_label_of_its_nodes_says_how_large_it_is(tmp_path):
    folder = checkpoint(tmp_path / "large")
    pods = {"gpus": 2, "processes": 2, "memory": "64Gi"}
    roomy = {"rollout": {"memory": "64Gi"}}
    unknown = run_on({**roomy, "learner": pods}, folder)
    check_run(unknown, ["train"])
    labelled = run_on({**roomy, "learner": {**pods, "node_selector": {"nvidia.com/gpu.memory": "2048"}}}, folder)
    with pytest.raises(InputError, match=r"each GPU of the learner needs at least .* GiB, and has 2\.0 GiB"):
        check_run(labelled, ["train"])


def test_the_error_for_a_run_on_this_machine_suggests_the_adapter(tmp_path, monkeypatch):
    monkeypatch.setattr("components.processes.memory.available", lambda: 2 * GIB)
    folder = checkpoint(tmp_path / "large")
    chosen = Settings.model_validate({"policy": {"model": {"kind": "checkpoint", "path": str(folder)}}})
    with pytest.raises(InputError) as caught:
        check_run(chosen, ["train"])
    assert "policy.lora" in str(caught.value.how)


def test_the_check_loads_no_torch():
    code = "import sys, components.planning.least; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# The command


@pytest.mark.parametrize(("text", "size"), [("80GiB", 80 * GIB), ("80Gi", 80 * GIB), ("80GB", 80 * 10**9)])
def test_amounts_of_memory(text, size):
    assert amount(text) == size


@pytest.mark.parametrize("text", ["80", "many", "-1GiB", "GiB", "80GiBs"])
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(InputError, match="is no amount of memory"):
        amount(text)


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    monkeypatch.setattr(sys, "argv", ["evenkeel", "plan", *arguments])
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as caught:
        evenkeel()
    return caught.value.code, capsys.readouterr().out


def test_the_command_needs_a_config_json_alone(tmp_path, monkeypatch, capsys):
    file = tmp_path / "config.json"
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    file.write_text(json.dumps(LlamaConfig(vocab_size=100, **shape).to_dict()), encoding="utf-8")
    demo = ("--config", str(ROOT / "configs/demo.yaml"), "--model", str(file))
    code, text = said(monkeypatch, capsys, *demo, "--memory", "512GiB")
    # 2 x (4 x 64 x 64 + 3 x 64 x 128 + 2 x 64) + 2 x 100 x 64 + 64
    assert (code, "LlamaForCausalLM: 95,040 parameters, all of them trained" in text) == (0, True)
    assert "fits" in text.splitlines()
    assert [word for word in ("activations", "moments", "cache", "reference", "LoRA", "64") if word not in text] == []
    code, text = said(monkeypatch, capsys, *demo, "--memory", "100MiB")
    assert (code, "does not fit:" in text) == (3, True)


def test_the_command_says_what_is_missing(tmp_path, monkeypatch, capsys):
    code, _ = said(monkeypatch, capsys, "--config", str(ROOT / "configs/demo.yaml"), "--model", str(tmp_path))
    assert code == 2
