"""The whole pipeline on a GPU, stage by stage as commands, with nothing set but what makes it small."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
import yaml

from components.config.policy import PolicySettings
from components.config.reading import merge
from components.files import read_json, write_jsonl
from components.layout import Layout
from components.policy import load_policy
from components.processes.environments import DEVICE
from tests.gpu.conftest import ON, REAL, ROOT
from tests.unit import factories

pytestmark = pytest.mark.gpu
STAGES = ("sft", "triage", "clusters", "train", "evaluate", "dpo")
"""Those that have a model. What the others write is made beforehand: they need packages that are not here."""


@pytest.mark.timeout(600)
def test_every_stage_uses_the_gpu(device, checkpoint, tmp_path, monkeypatch):
    layout, real = factories.workspace(tmp_path), checkpoint == REAL
    write_jsonl(tmp_path / "pairs.jsonl", [{"prompt": f"{n}+1=", "chosen": "#2", "rejected": "#3"} for n in range(4)])
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config(real)), "utf-8")
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "EVENKEEL_DEBUG": "1"}
    for stage in STAGES:
        command = [sys.executable, "-m", "components", stage, "--config", "params.yaml"]
        command += ["--set", "device=cpu"] if os.environ.get(ON) == "cpu" else []
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{stage}: {done.stderr[-3000:]}"
    for stage in ("sft", "train", "dpo"):
        assert read_json(layout.state / stage / "identity.json")["device"] == device.type
    signals = read_json(layout.train_metrics)["final"]
    assert signals["grad_norm"] > 0 and signals["nonfinite"] == 0
    check_candidates(layout, monkeypatch)


def check_candidates(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was saved from the GPU is loaded on a CPU, in float32."""
    monkeypatch.setenv(DEVICE, "cpu")
    for folder in (layout.sft_checkpoint, layout.train_checkpoint, layout.dpo_checkpoint):
        model = load_policy(folder, PolicySettings()).model
        assert (model.device.type, model.dtype) == ("cpu", torch.float32)


def config(real: bool) -> dict:
    """Settings without a device: it is found. No answer of these models is right: the entropy bonus alone makes a
    gradient, and pairs come from a file."""
    sections = {
        "triage": {"override": "nothing is learned here", "prompts": 4, "samples": 4},
        "schedule": {"kind": "uniform"},
        "rollout": {"dynamic_sampling": None, "max_new_tokens": 8},
        "reward": {"verifier": {"kind": "exact", "marker": "#"}},
        "train": {"steps": 2},
        "dpo": {"steps": 2, "held_out": 0, "batch_size": 2, "pairs": {"path": "pairs.jsonl"}},
        "objective": {"kl": {"kind": "k3"}, "entropy": {"coef": 0.01}},
    }
    model = {"policy": {"model": {"kind": "checkpoint", "path": str(REAL)}}} if real else {}
    return merge(merge(factories.MICRO, sections), model)
