"""One pair: what triage says of it, and what training gains whatever that is."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from components.config import Settings, load
from components.files import read_json, read_jsonl
from components.layout import Layout
from components.stages import run_stage
from tests.benchmarks.lines import provenance
from tests.benchmarks.measured_code import Code
from tests.benchmarks.real.model import MODEL
from tests.benchmarks.recipes import accuracy
from tests.benchmarks.section import Row
from tests.benchmarks.triage.pairs import PAIRS, SFT_ON, TASKS
from tests.code_graph import ROOT

ROWS = 80
"""Problems of a data set; of products of two digits there are hardly more."""
BEFORE_SFT, BEFORE_TRAINING = ("data", "sft"), ("data", "audit", "sft", "admission", "triage", "clusters")


def checkpoint(work: Path, sft: int) -> Path:
    """The model after so many SFT steps on a mixture of short tasks; made once."""
    if not sft:
        return MODEL
    folder = work / f"sft-{sft}"
    layout = Layout(folder)
    if not layout.sft_checkpoint.exists():
        datasets: Row = {}
        for task in SFT_ON:
            datasets |= TASKS[task]
        settings = _settings(folder, MODEL, datasets, {
            "sft": {"steps": sft, "batch_size": 8, "lr": 5e-5, "warmup": 2, "checkpoint_every": 1000,
                    "compute_dtype": "bfloat16"},
            "data": {"splits": {"sft": 0.7, "train": 0.1, "dev": 0.1, "test": 0.1}},
        })  # fmt: skip
        for stage in BEFORE_SFT:
            run_stage(stage, settings, layout)
    return layout.sft_checkpoint


def measure(work: Path, number: int) -> Row:
    """Judge and train one pair; accuracy before and after on the same held-out prompts."""
    with tempfile.TemporaryDirectory(dir=work, prefix=f"pair-{number}-") as folder:  # checkpoints of gigabytes
        return _measured(number, checkpoint(work, PAIRS[number].sft), Path(folder))


def _measured(number: int, model: Path, folder: Path) -> Row:
    pair, code, layout = PAIRS[number], Code.now(), Layout(folder)
    settings = _settings(folder, model, TASKS[pair.task], {
        "sft": {"steps": 0},
        "train": {"steps": pair.steps, "prompts_per_step": 8, "eval_every": pair.steps, "eval_prompts": 2,
                  "eval_samples": 2, "checkpoint_every": 1000, "keep_pairs": 0},
    })  # fmt: skip
    for stage in BEFORE_TRAINING:
        run_stage(stage, settings, layout)
    before = accuracy(settings, layout, "sft_checkpoint")
    run_stage("train", settings, layout)
    after = accuracy(settings, layout, "train_checkpoint")
    return {
        "pair": number,
        **pair._asdict(),
        "triage": read_json(layout.triage),
        "before": before["pass_at_1"],
        "after": after["pass_at_1"],
        "accuracy": [row["signals"].get("accuracy") for row in read_jsonl(layout.records)],
        **provenance(code),
    }


def _settings(folder: Path, model: Path, datasets: Row, changes: Row) -> Settings:
    """A small run of ``model`` on ``datasets`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "source": {"kind": "reasoning_gym", "rows": ROWS * len(datasets), "datasets": datasets},
        "splits": {"sft": 0, "train": 0.5, "dev": 0.1, "test": 0.4},
        "concentration": {"max_template": 1.0, "max_labelled_template": 1.0},
    }
    base: Row = {
        "extends": [str(ROOT / "configs/recipes/grpo.yaml")],
        "name": folder.name,
        "threads": 1,
        "data": data | changes.get("data", {}),
        "policy": {"model": {"kind": "checkpoint", "path": str(model.resolve())}},
        "reward": {"verifier": {"kind": "reasoning_gym"}},
        "audit": {"override": "the pairs measure triage"},
        "triage": {"prompts": 40, "samples": 16, "override": "every pair is trained"},
        "schedule": {"kind": "uniform"},
        "health": {"enabled": False},
        "rollout": {"group_size": 8, "max_new_tokens": 10, "engine": {"precision": "bfloat16"}},
        "learner": {"lr": 2.0e-5, "warmup": 2, "compute_dtype": "bfloat16"},
        "evaluation": {"prompts": 40, "samples": 8, "reuse": False},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**base, **{name: part for name, part in changes.items() if name != "data"}}))
    return load(path)
