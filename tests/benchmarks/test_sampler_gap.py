"""How far real vLLM servers are from the learner, what a hand-over and a token cost, and what TIS is worth.

    pytest -s tests/benchmarks/test_sampler_gap.py

The policy is the demo's SFT checkpoint: a random one has flat distributions and hides what a sharp one shows. The
figures of a table are measured in one run. The int8 row is the embedded engine's, because vLLM on CPUs takes int8
weights from a quantised checkpoint only, and no new ones while it runs. ``EVENKEEL_BENCH_STEPS`` is the length of a
training.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest
import torch
from rich.console import Console
from rich.table import Table

from components.config import load
from components.config.rollout import RolloutSettings
from components.data.prompts import read_prompts
from components.files import read_json, read_jsonl
from components.layout import Layout
from components.policy import Policy, load_policy
from components.processes import vllm_python
from components.rollout import Engine, Sampling, build_engine
from components.rollout.servers.check import Gap, differences, gap
from components.rollout.servers.client import Written
from components.stages import run_stage
from tests.recipes import CONFIGS, prepare

STEPS = int(os.environ.get("EVENKEEL_BENCH_STEPS", "16"))
SAMPLING = Sampling(n=8, max_new_tokens=40, temperature=1.0, seed=0)
PROMPTS = 64
CAP = 2.0
VLLM = {"kind": "vllm", "processes": 1, "check": {"mean_gap": 2.0, "max_gap": 40.0}}
SAMPLERS: dict[str, dict[str, Any]] = {
    "embedded, fp32": {},
    "embedded, int8": {"precision": "int8"},
    "vLLM, fp32": VLLM,
    "vLLM, bf16": {**VLLM, "dtype": "bfloat16"},
    "vLLM, bf16, e4m3 cache": {**VLLM, "dtype": "bfloat16", "kv_cache_dtype": "fp8_e4m3"},
    "vLLM, bf16, e5m2 cache": {**VLLM, "dtype": "bfloat16", "kv_cache_dtype": "fp8_e5m2"},
}
TRAININGS = {
    "embedded, fp32, TIS": ("{kind: torch}", True),
    "vLLM, e5m2 cache, TIS": (str({**SAMPLERS["vLLM, bf16, e5m2 cache"]}), True),
    "vLLM, e5m2 cache": (str({**SAMPLERS["vLLM, bf16, e5m2 cache"]}), False),
}
SIGNALS = ("mismatch_mean", "mismatch_k3", "ess")


def distance(policy: Policy, prompts: list[tuple[int, ...]], groups: Any) -> tuple[Gap, float, float]:
    """The gap over all completions, the mean of the TIS weights' distance from 1, and the share of them at the cap."""
    parts = []
    for prompt, group in zip(prompts, groups, strict=True):
        written = [Written(one.token_ids, one.logprobs, ()) for one in group]
        parts.append(differences(policy, prompt, written, SAMPLING.temperature))
    off = torch.cat(parts)
    weights = off.exp().clamp(max=CAP)
    return gap(off), (weights - 1).abs().mean().item(), (weights == CAP).double().mean().item()


def measure(policy: Policy, prompts: list[tuple[int, ...]], options: dict[str, Any], logs: Path) -> dict[str, float]:
    engine = build_engine(policy, RolloutSettings.model_validate({"engine": options}), logs)
    try:
        engine.generate(prompts[:4], SAMPLING)  # warm
        begin = time.perf_counter()
        groups = engine.generate(prompts, SAMPLING)
        seconds = time.perf_counter() - begin
        whole, off, capped = distance(policy, prompts, groups)
        return {
            "mean": whole.mean,
            "max": whole.largest,
            "k3": whole.k3,
            "|TIS - 1|": off,
            "at cap": capped,
            "tokens/s": whole.tokens / seconds,
            "hand-over ms": hand_over_ms(engine, policy),
        }
    finally:
        engine.close()


def hand_over_ms(engine: Engine, policy: Policy) -> float:
    """Median of five, the log-prob check included."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        engine.load_weights(policy.weights())
        times.append(1000 * (time.perf_counter() - begin))
    return median(times)


def compare(prepared: Path, folder: Path) -> dict[str, dict[str, float]]:
    settings, layout = load(CONFIGS / "demo.yaml"), Layout(prepared)
    policy = load_policy(layout.sft_checkpoint, settings.policy)
    prompts = [policy.encode_prompt(prompt.text) for prompt in list(read_prompts(layout.split("dev")))[:PROMPTS]]
    return {name: measure(policy, prompts, o, folder / f"logs-{i}") for i, (name, o) in enumerate(SAMPLERS.items())}


def learn(prepared: Path, folder: Path, arm: str, seed: int = 0) -> dict[str, Any]:
    """Train one arm; held-out accuracy of its checkpoint at fp32, means of its signals, and its curve."""
    engine, corrected = TRAININGS[arm]
    changes = [
        f"seed={seed}",
        "objective.correction=" + ("{kind: tis_token, cap: 2.0}" if corrected else "null"),
        "triage.override=every arm starts from the same checkpoint",
        "health.enabled=false",
        "schedule={kind: uniform}",
        "rollout.dynamic_sampling=null",
        "learner={lr: 3.0e-4, warmup: 4}",
        f"train={{steps: {STEPS}, prompts_per_step: 16, eval_every: {STEPS}, eval_prompts: 16, eval_samples: 2}}",
        "evaluation={prompts: 150, samples: 4}",
    ]
    shutil.copytree(prepared / "out", folder / "out")
    layout = Layout(folder)
    run_stage("train", load(CONFIGS / "demo.yaml", [*changes, f"rollout.engine={engine}"]), layout)
    run_stage("evaluate", load(CONFIGS / "demo.yaml", changes), layout)
    trained = read_json(layout.evaluation)["trained"]
    steps = [row["signals"] for row in read_jsonl(layout.records)]
    return {
        "pass@1": trained["pass_at_1"],
        "greedy": trained["greedy"],
        **{name: fmean(step[name] for step in steps if name in step) for name in SIGNALS},
        "curve": [round(step["accuracy"], 3) for step in steps],
    }


def table(title: str, rows: dict[str, dict[str, Any]]) -> Table:
    names = list(next(iter(rows.values())))
    shown = Table("sampler", *names, title=title)
    for name, row in rows.items():
        shown.add_row(name, *(f"{row[n]:.3g}" if isinstance(row[n], float) else str(row[n]) for n in names))
    return shown


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        vllm_python(None)
    except Exception as error:
        pytest.skip(f"no environment with vLLM (make vllm-env): {error}")
    return prepare(tmp_path_factory.mktemp("prepared"), "dapo", {})


@pytest.mark.timeout(7200)
def test_the_gap_grows_with_coarser_formats_and_tis_weights_follow_it(prepared: Path, tmp_path: Path) -> None:
    rows = compare(prepared, tmp_path)
    Console(width=160).print(table("|sampler - learner|, nats", rows))
    order = ["vLLM, fp32", "vLLM, bf16", "vLLM, bf16, e4m3 cache", "vLLM, bf16, e5m2 cache"]
    for name in ("mean", "k3", "|TIS - 1|"):
        values = [rows[sampler][name] for sampler in order]
        assert values == sorted(values), name


@pytest.mark.timeout(7200)
def test_accuracy_with_and_without_the_correction(prepared: Path, tmp_path: Path) -> None:
    rows = {arm: learn(prepared, tmp_path / str(number), arm) for number, arm in enumerate(TRAININGS)}
    Console(width=200).print(table(f"{STEPS} steps", rows))
    assert rows["embedded, fp32, TIS"]["mismatch_k3"] < rows["vLLM, e5m2 cache"]["mismatch_k3"]
