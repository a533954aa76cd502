"""Somebody else's checkpoint and prompts go through every stage: a Llama folder, and what TRL trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from datasets import Dataset
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from trl import GRPOConfig, GRPOTrainer

from components.config import Settings, dump, load, pin_inputs
from components.layout import Layout
from components.policy.tiny import build_tokenizer
from components.stages import STAGES, run_stage
from tests.code_graph import ROOT
from tests.integration.small import NO_LIMITS, SMALL

pytestmark = pytest.mark.integration
ROWS = [(f"What is {a} plus {b}?", f"{a} and {b} make #### {a + b}") for a in range(24) for b in range(24)]


def save_llama(folder: Path) -> Path:
    tokenizer = build_tokenizer([text for row in ROWS for text in row], vocab_size=300, max_positions=128)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=128,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def every_stage(folder: Path, *more: str) -> tuple[Settings, Layout]:
    """Run the pipeline on a Llama folder and a Parquet file, with more settings."""
    pq.write_table(pa.table({"q": [q for q, _ in ROWS], "a": [a for _, a in ROWS]}), folder / "prompts.parquet")
    own = (
        f"data.source={{kind: parquet, path: {folder}/prompts.parquet, question: q, answer: a}}",
        "data.source.answer_pattern='####\\s*(.+)$'",
        "data.splits={sft: 0, train: 0.6, dev: 0.2, test: 0.2}",
        f"policy.model={{kind: checkpoint, path: {folder / 'llama'}}}",
        "reward.verifier={kind: numeric}",
        "sft.steps=0",
        "train.steps=2",
        "triage.override=a model with random weights",
    )
    small = [pair for pair in SMALL if not pair.startswith(("data.source", "policy.model", "sft.", "train.steps"))]
    settings = pin_inputs(load(ROOT / "configs/demo.yaml", [*small, *NO_LIMITS, *own, *more]))
    layout = Layout(folder / "run")
    for stage in STAGES:
        run_stage(stage, settings, layout)
    return settings, layout


@pytest.mark.slow
def test_a_llama_folder_and_a_parquet_file_go_through_every_stage(tmp_path: Path) -> None:
    save_llama(tmp_path / "llama")
    settings, layout = every_stage(tmp_path)
    assert json.loads(layout.validation.read_text())["rows"] == len(ROWS)
    assert json.loads(layout.train_metrics.read_text())["steps"] == 2
    assert "LlamaForCausalLM" in (layout.train_checkpoint / "config.json").read_text()
    assert json.loads(layout.gate.read_text())["result"] in ("pass", "inconclusive")
    assert "kind: parquet" in dump(settings)


def long_is_good(completions: list[str], **_: Any) -> list[float]:
    return [float(len(completion)) for completion in completions]


@pytest.mark.slow
def test_what_trl_trained_goes_through_every_stage_and_its_log_is_left_to_a_person(tmp_path: Path) -> None:
    base = save_llama(tmp_path / "llama")
    trainer = GRPOTrainer(
        model=str(base),
        reward_funcs=[long_is_good],
        args=GRPOConfig(
            output_dir=str(tmp_path / "trl"), use_cpu=True, bf16=False, report_to="none", disable_tqdm=True, seed=0,
            max_steps=4, logging_steps=1, save_steps=4, num_generations=4, per_device_train_batch_size=4,
            max_completion_length=8, learning_rate=1e-3,
        ),
        train_dataset=Dataset.from_dict({"prompt": [question for question, _ in ROWS[:8]]}),
        processing_class=AutoTokenizer.from_pretrained(base),
    )  # fmt: skip
    trainer.train()
    left = tmp_path / "trl" / "checkpoint-4"
    adopted = {"checkpoint": {"path": str(left)}, "log": {"path": str(left / "trainer_state.json")}}
    _, layout = every_stage(tmp_path, f"train.adopted={json.dumps(adopted)}")
    summary, gate = (json.loads(path.read_text()) for path in (layout.train_metrics, layout.gate))
    assert (summary["outcome"], summary["steps"], summary["checkpoint_step"]) == ("adopted", 4, 4)
    assert {"optimizer.pt", "training_args.bin"} <= set(summary["left_out"])
    assert summary["checkpoint_sha256"] != json.loads(layout.sft_metrics.read_text())["checkpoint_sha256"]
    open_ = {check["name"] for check in gate["checks"] if check["result"] == "inconclusive"}
    assert (gate["result"], {"training health", "training completed"} <= open_) == ("inconclusive", True)
    assert "Adopted: trained by TRL" in layout.verdict.read_text()
