"""The pipeline with a real language model, a real vLLM server and two ranks, from the configuration that users run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from components.files import read_jsonl
from tests.code_graph import ROOT
from tests.integration.test_demo import evenkeel, settings
from tests.project import commit_all, copy_project

MODEL = Path("models/smollm2-135m-instruct")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own with the model in it, whose policy asks for no gain: eight steps are few."""
    if not (ROOT / MODEL / "provenance.json").exists():
        pytest.skip(f"no {MODEL}: make model")
    root = commit_all(copy_project(tmp_path))
    shutil.copytree(ROOT / MODEL, root / MODEL)
    return root


def test_a_real_model_goes_through_a_vllm_server_and_two_ranks_to_a_candidate(project: Path) -> None:
    code, said = evenkeel(
        project, "run", "--config", "configs/local-processes-llm.yaml", *settings("gate.min_gain=-1"), timeout=3500
    )
    assert code == 0, said
    (workspace,) = (project / "runs").glob("local-processes-llm-*")
    assert "awaiting approval" in said
    gate = json.loads((workspace / "out/gate.json").read_text())
    assert gate["result"] in ("pass", "inconclusive"), "eight steps may be too few to tell a loss from noise"

    records = list(read_jsonl(workspace / "out/train/records.jsonl"))
    gaps = [row["signals"]["mismatch_mean"] for row in records if "mismatch_mean" in row["signals"]]
    backs = [row["step"] + 1 - row["notes"]["rolled_back_to"] for row in records if "rolled_back_to" in row["notes"]]
    assert len(records) - sum(backs) == 8, "steps that no response has undone"
    assert gaps and max(gaps) < 1e-3, "the server samples from other weights than the ranks have"
    assert any(row["signals"].get("grad_norm", 0) > 0 for row in records)
