"""Somebody else's checkpoint and prompts: a Llama folder on disk and a Parquet file go through every stage."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from components.config import dump, load, pin_inputs
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


@pytest.mark.slow
def test_a_llama_folder_and_a_parquet_file_go_through_every_stage(tmp_path: Path) -> None:
    pq.write_table(pa.table({"q": [q for q, _ in ROWS], "a": [a for _, a in ROWS]}), tmp_path / "prompts.parquet")
    own = (
        f"data.source={{kind: parquet, path: {tmp_path}/prompts.parquet, question: q, answer: a}}",
        "data.source.answer_pattern='####\\s*(.+)$'",
        "data.splits={sft: 0, train: 0.6, dev: 0.2, test: 0.2}",
        f"policy.model={{kind: checkpoint, path: {save_llama(tmp_path / 'llama')}}}",
        "reward.verifier={kind: numeric}",
        "sft.steps=0",
        "train.steps=2",
        "triage.override=a model with random weights",
    )
    small = [pair for pair in SMALL if not pair.startswith(("data.source", "policy.model", "sft.", "train.steps"))]
    settings = pin_inputs(load(ROOT / "configs/demo.yaml", [*small, *NO_LIMITS, *own]))
    layout = Layout(tmp_path / "run")
    for stage in STAGES:
        run_stage(stage, settings, layout)
    assert json.loads(layout.validation.read_text())["rows"] == len(ROWS)
    assert json.loads(layout.train_metrics.read_text())["steps"] == 2
    assert "LlamaForCausalLM" in (layout.train_checkpoint / "config.json").read_text()
    assert json.loads(layout.gate.read_text())["result"] in ("pass", "inconclusive")
    assert "kind: parquet" in dump(settings)
