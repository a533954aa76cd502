"""One run from the checkpoint of its seed, measured every few steps on games of the dev split.

PPO and GRPO differ in the advantage alone: the clip, the mean over tokens, the correction of the sampler and the
learning rate are the same. Settings were chosen on seed 0, which is not reported.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import yaml

from components.config import Settings, load
from components.files import read_jsonl, write_text
from components.layout import Layout
from components.stages import run_stage
from tests.benchmarks.horizon.doors import TURNS
from tests.recipes import PREPARED

Row = dict[str, Any]
GAE: Row = {"kind": "gae", "gamma": 1.0, "critic_lambda": 1.0, "policy_lambda": 0.95, "whiten": True}
METHODS: dict[str, Row] = {
    "grpo": {"advantage": {"kind": "grpo", "std": "population"}, "learner": {}},
    "ppo": {
        "advantage": {**GAE, "fallback": "batch"},
        "learner": {"critic": {"lr": 2.0e-3, "pretrain_steps": 5, "updates_per_step": 4}},
    },
}
STEPS, PROMPTS, GROUP, EVAL_EVERY = 40, 8, 8, 8
COMMON: Row = {
    "objective": {
        "ratio": {"kind": "clip", "low": 0.2, "high": 0.2},
        "aggregation": {"kind": "token_mean"},
        "kl": None,
        "correction": {"kind": "tis_token", "cap": 2.0},
    },
    "reward": {"verifier": {"kind": "environment", "accuracy": "found"}},
    "audit": {"override": "the rubric is one line"},
    "triage": {"override": "the game is won seldom at first"},
    "schedule": {"kind": "uniform"},
    "rollout": {"group_size": GROUP, "max_new_tokens": 80, "dynamic_sampling": None},
    "health": {"enabled": False},
}
MODEL: Row = {"kind": "tiny", "hidden_size": 64, "layers": 3, "heads": 2, "kv_heads": 1, "intermediate_size": 192}


def source(games: int, seed: int, *, practice: bool) -> Row:
    """Games from their beginning, or positions in the middle of some."""
    tasks = {"practice": practice, "games": games, "seed": seed}
    target = "tests.benchmarks.horizon.doors"
    return {"kind": "verifiers", "target": target, "rows": games, "settings": {"taskset": tasks}, "max_turns": TURNS}


def prepared(work: Path, seed: int) -> Path:
    """The SFT checkpoint of a seed: a player who knows some of the doors."""
    layout = Layout(work / f"sft-{seed}")
    if not layout.sft_checkpoint.exists():
        practice = {
            "seed": seed,
            "policy": {"model": {**MODEL, "vocab_size": 272, "max_positions": 128}, "chat": False},
            "data": {
                "source": source(4000, seed, practice=True),
                "splits": {"sft": 0.91, "train": 0.03, "dev": 0.03, "test": 0.03},
            },
            "sft": {"steps": 1000, "batch_size": 64, "lr": 3.0e-3},
        }
        settings = written(layout.root, practice)
        for stage in ("data", "audit", "sft"):
            run_stage(stage, settings, layout)
    return layout.sft_checkpoint


def measure(work: Path, method: str, seed: int) -> Row:
    """Train with one method.

    Returns:
        ``curve``, pairs of episodes played and held-out success; ``turns`` and the critic's ``explained`` variance, one
        a step; ``seconds``, the processor time of stage `train` without the environment's process.
    """
    layout = Layout(work / f"run-{method}-{seed}")
    shutil.rmtree(layout.root, ignore_errors=True)
    own = METHODS[method]
    settings = written(
        layout.root,
        {
            "seed": seed,
            "policy": {"model": {"kind": "checkpoint", "path": str(prepared(work, seed))}, "chat": False},
            "data": {
                "source": source(2000, seed + 1000, practice=False),
                "splits": {"sft": 0.01, "train": 0.79, "dev": 0.1, "test": 0.1},
            },
            "sft": {"steps": 0},
            "objective": {**COMMON["objective"], "advantage": own["advantage"]},
            "learner": {"lr": 5.0e-4, "warmup": 5, **own["learner"]},
            "train": {
                **{"steps": STEPS + 1, "prompts_per_step": PROMPTS, "checkpoint_every": STEPS + 1},
                **{"eval_every": EVAL_EVERY, "eval_prompts": 128, "eval_samples": 1},
            },
        },
    )
    for stage in PREPARED:
        run_stage(stage, settings, layout)
    began = time.process_time()
    run_stage("train", settings, layout)
    seconds = time.process_time() - began
    records = [one["signals"] for one in read_jsonl(layout.records)]
    shutil.rmtree(layout.root)
    return {
        "method": method,
        "seed": seed,
        "curve": [
            (step * PROMPTS * GROUP, one["dev_pass_at_1"]) for step, one in enumerate(records) if step % EVAL_EVERY == 0
        ],
        "turns": [one["metric_turns"] for one in records],
        "explained": [one.get("explained_variance") for one in records],
        "seconds": seconds,
    }


def written(folder: Path, changes: Row) -> Settings:
    """The settings of a run, from a file of its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.yaml"
    write_text(path, yaml.safe_dump({"name": "doors", **COMMON, **changes}))
    return load(path)
