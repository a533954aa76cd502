"""A policy that is larger than memory is refused before it is loaded, with both figures."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from components.command import main as stage
from components.config import Settings, load
from components.config.policy import CheckpointModel, PolicySettings
from components.errors import InputError
from components.planning.least import check_run
from components.policy import load_policy
from components.processes import memory
from components.processes.memory import GIB, available, largest_need, parameters_in, rooms
from components.stages import STAGES
from flows.cli import main as evenkeel
from flows.host import doctor
from flows.host.git import git
from tests.code_graph import ROOT

BILLION = 10**9


def checkpoint(folder: Path, parameters: int = BILLION, name: str = "model.safetensors") -> Path:
    """A folder whose weights are that many, by the header of a file that takes no room on the disk."""
    header = {name: {"dtype": "F32", "shape": [parameters], "data_offsets": [0, 4 * parameters]}, "__metadata__": {}}
    content = json.dumps(header).encode()
    folder.mkdir(exist_ok=True)
    with (folder / name).open("wb") as file:
        file.write(struct.pack("<Q", len(content)) + content)
        file.truncate(8 + len(content) + 4 * parameters)
    return folder


def settings(folder: Path, **sections: Any) -> Settings:
    model = {"kind": "checkpoint", "path": str(folder)}
    return Settings.model_validate({**sections, "policy": {"model": model, **sections.get("policy", {})}})


@pytest.fixture
def two_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2 * GIB)
    monkeypatch.setattr(doctor, "available", lambda: 2 * GIB)


def test_weights_are_counted_without_reading_them(tmp_path):
    assert parameters_in(checkpoint(tmp_path / "one")) == BILLION
    for part in ("a.safetensors", "b.safetensors"):
        shards = checkpoint(tmp_path / "shards", name=part)
    assert parameters_in(shards) == 2 * BILLION
    index = {"weight_map": {"w": "a.safetensors"}}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert parameters_in(shards) == BILLION


NESTED = struct.pack("<Q", 200_000) + b"[" * 200_000
TEXT = struct.pack("<Q", 21) + b'{"a":{"shape":["7"]}}'


@pytest.mark.parametrize("content", [b"", b"\xff" * 16, struct.pack("<Q", 2) + b"[]", NESTED, TEXT])
def test_what_is_no_checkpoint_is_left_to_whoever_loads_it(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    assert parameters_in(tmp_path) == 0
    assert parameters_in(tmp_path / "absent") == 0


def test_weights_that_are_a_pipe_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model-00001.safetensors")
    assert parameters_in(tmp_path) == 0


def test_a_stage_that_learns_needs_gradients_and_moments_and_the_engine_a_copy(tmp_path):
    def need(stage: str, **sections: Any) -> float:
        return largest_need(settings(tmp_path, **sections), [stage], 1)[1]

    ranks = {"learner": {"kind": "deepspeed"}, "launch": {"kind": "processes"}}
    assert need("sft", sft={"steps": 0}) == 4
    assert need("sft", sft={"steps": 1}) == 4 * 4
    assert need("train") == 4 * 4 + 4
    assert need("train", policy={"dtype": "bfloat16"}) == 4 * 2 + 2
    assert need("train", rollout={"engine": {"kind": "torch", "precision": "int8"}}) == 4 * 4 + 1
    assert need("train", rollout={"engine": {"kind": "torch", "precision": "int4"}}) == 4 * 4 + 4
    assert need("train", rollout={"engine": {"kind": "vllm", "processes": 1, "dtype": "float16"}}) == 4 * 4 + 2
    assert need("train", rollout={"engine": {"kind": "vllm", "processes": 2, "dtype": "float16"}}) == 4 * 4 + 2 * 2
    assert need("train", rollout={"engine": {"kind": "vllm", "urls": ["http://rollout-0:8000"]}}) == 4 * 4
    adapter = {"policy": {"lora": {}}}
    assert [need(stage, sft={"steps": 1}, **adapter) for stage in ("sft", "train", "dpo")] == [3 * 4, 3 * 4 + 4, 3 * 4]
    assert need("train", **ranks, **adapter) == 3 * 4 + 4 + 4
    assert need("train", **ranks) == 4 + 4 * 4 + 4
    assert need("dpo") == 4 * 4 + 4
    assert [need(stage, sft={"steps": 1}, **ranks) for stage in ("sft", "dpo")] == [4 + 4 * 4] * 2
    assert need("clusters") == 4
    assert need("gate") == 0


@pytest.mark.parametrize(
    ("engine", "held"),
    [
        ({"dtype": "float16"}, 4 * 4 + 2),
        ({"dtype": "float16", "tensor_parallel": 2}, 4 * 4 + 1),
        ({"dtype": "float16", "devices": [" 0,1"], "tensor_parallel": 2}, 4 * 4 + 1),
        ({"dtype": "float16", "devices": ["1"]}, 4 * 4),
        ({"dtype": "float16", "devices": ["0", "0"], "processes": 2, "gpu_memory": 0.4}, 4 * 4 + 2 * 2),
        ({"dtype": "float16", "sleep": True}, 4 * 4),
    ],
)
def test_of_a_server_counts_what_is_on_the_gpu_of_the_learner(tmp_path, monkeypatch, engine, held):
    monkeypatch.setattr(memory, "has_gpus", lambda: True)
    monkeypatch.setattr(memory, "gpu_memory", lambda: 80 * GIB)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    chosen = settings(tmp_path, rollout={"engine": {"kind": "vllm", "processes": 1, **engine}})
    assert largest_need(chosen, ["train"], 1)[1] == held
    assert largest_need(chosen.model_copy(update={"device": "cpu"}), ["train"], 1)[1] == 4 * 4
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,2")
    if "1" in str(engine.get("devices")):
        assert largest_need(chosen, ["train"], 1)[1] == 4 * 4 + 2 / chosen.rollout.engine.tensor_parallel


def test_a_machine_holds_its_own_ranks_of_a_learner_and_none_that_have_gpus(monkeypatch):
    monkeypatch.setattr(memory, "has_gpus", lambda: False)
    assert memory.ranks_here({}) == 1
    place = {"TORCHELASTIC_RUN_ID": "run", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "8"}
    assert memory.ranks_here(place) == 0.25
    monkeypatch.setattr(memory, "has_gpus", lambda: True)
    assert memory.ranks_here(place) == 0


def test_stages_that_run_on_a_cluster_need_no_memory_here():
    elsewhere = load(ROOT / "configs/kubernetes.yaml")
    assert elsewhere.launch.kubernetes is not None
    assert largest_need(elsewhere, list(elsewhere.launch.kubernetes.stages), BILLION) == ("", 0.0)


def test_a_run_is_refused_with_the_stage_that_needs_most_and_both_figures(tmp_path, two_gib):
    folder = checkpoint(tmp_path / "large")
    with pytest.raises(InputError) as caught:
        check_run(settings(folder), list(STAGES))
    assert caught.value.what == (
        "the model is larger than memory: stage train needs at least 18.6 GiB of memory, and 2.0 GiB are available "
        "(1,000,000,000 parameters)"
    )
    assert (caught.value.where, "policy.dtype=bfloat16" in str(caught.value.how)) == (str(folder), True)


def test_where_stages_compute_on_a_gpu_its_memory_counts(tmp_path, two_gib, monkeypatch):
    monkeypatch.setattr(memory, "gpu_memory", lambda: 16 * GIB)
    folder = checkpoint(tmp_path / "large")
    with pytest.raises(InputError, match=r"needs at least 18\.6 GiB of the GPU's memory, and 16\.0 GiB are available"):
        check_run(settings(folder), list(STAGES))
    with pytest.raises(InputError, match=r"18\.6 GiB of memory, and 2\.0"):
        check_run(settings(folder, device="cpu"), list(STAGES))
    monkeypatch.setattr(memory, "gpu_memory", lambda: 24 * GIB)
    check_run(settings(folder), list(STAGES))


@pytest.mark.parametrize(
    ("said", "found"), [("echo '81559\n46068'", 46068 * 2**20), ("echo '[N/A]'", None), ("exit 9", None)]
)
def test_the_smallest_gpu_is_the_one_that_counts(tmp_path, monkeypatch, said, found):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{said}\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(memory, "has_gpus", lambda: True)
    assert memory.gpu_memory.__wrapped__() == found
    monkeypatch.setattr(memory, "has_gpus", lambda: False)
    assert memory.gpu_memory.__wrapped__() is None


def test_a_run_that_fits_and_one_that_makes_its_own_model_are_not_refused(tmp_path, two_gib):
    check_run(settings(checkpoint(tmp_path / "small", BILLION // 10)), list(STAGES))
    check_run(Settings(), list(STAGES))


def test_nothing_is_loaded_that_is_larger_than_memory(tmp_path, two_gib):
    folder = checkpoint(tmp_path / "large")
    model = PolicySettings(model=CheckpointModel(kind="checkpoint", path=folder))
    with pytest.raises(InputError, match=r"loading it in float32 needs at least 3\.7 GiB of memory, and 2\.0 GiB are"):
        load_policy(folder, model)


@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"]])
def test_the_command_refuses_before_it_reads_the_weights(tmp_path, two_gib, monkeypatch, capsys, command):
    git(tmp_path, "init", "--quiet")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    config = tmp_path / "run.yaml"
    config.write_text(f"policy: {{model: {{kind: checkpoint, path: {checkpoint(tmp_path / 'large')}}}}}\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["evenkeel", *command, "--config", str(config)])
    monkeypatch.setattr("flows.cli.runs.locate", None)
    with pytest.raises(SystemExit) as caught:
        evenkeel()
    assert (caught.value.code, "stage train needs at least 18.6 GiB" in capsys.readouterr().err) == (2, True)


def test_a_stage_by_itself_is_refused_too(tmp_path, two_gib, monkeypatch, capsys):
    folder = checkpoint(tmp_path / "large")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(
        f"policy: {{model: {{kind: checkpoint, path: {folder}}}}}\n", encoding="utf-8"
    )
    assert stage(["sft", "--set", "sft.steps=0"]) == 2
    assert "stage sft needs at least 3.7 GiB of memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parameters", "state", "finding"),
    [
        (BILLION, "fail", "stage train needs at least 18.6 GiB of memory, 2.0 GiB are available"),
        (BILLION // 10, "ok", "100,000,000 parameters: stage train needs at least 1.9 GiB of memory"),
        (0, "fail", "no safetensors in"),
    ],
)
def test_doctor_compares_the_checkpoint_of_a_configuration_with_memory(tmp_path, two_gib, parameters, state, finding):
    folder = checkpoint(tmp_path / "model", parameters)
    (tmp_path / "run.yaml").write_text(f"policy: {{model: {{kind: checkpoint, path: {folder}}}}}\n", encoding="utf-8")
    (check,) = doctor.model(load(tmp_path / "run.yaml"))
    assert (check.state, finding in check.finding, bool(check.fix)) == (state, True, state != "ok")


# What is available


def group(mount: Path, path: str, files: dict[str, object]) -> None:
    folder = mount / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n", encoding="ascii")


def test_the_smallest_room_of_all_control_groups_counts(tmp_path):
    groups, mount = tmp_path / "cgroup", tmp_path / "mount"
    groups.write_text("0::/outer/inner\n", encoding="utf-8")
    group(mount, "outer/inner", {"memory.max": "max", "memory.current": 500})
    group(mount, "outer", {"memory.max": 2000, "memory.current": 700, "memory.stat": "anon 400\ninactive_file 300"})
    assert list(rooms(groups, mount)) == [2000 - 700 + 300]


def test_control_groups_of_version_1_count_too(tmp_path):
    groups, mount = tmp_path / "cgroup", tmp_path / "mount"
    groups.write_text("9:cpu:/pod\n4:memory:/pod\n0::/\n", encoding="utf-8")
    group(mount, "memory/pod", {"memory.limit_in_bytes": 900, "memory.usage_in_bytes": 100})
    group(mount, "memory", {"memory.limit_in_bytes": 2**62, "memory.usage_in_bytes": 0})
    assert min(rooms(groups, mount)) == 800


def test_memory_without_control_groups_is_that_of_the_machine(tmp_path):
    assert list(rooms(tmp_path / "absent", tmp_path)) == []
    assert 0 < available() <= psutil.virtual_memory().total
