"""Code from outside: examples of docs/extend.md go through every stage in one run; changed code is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from components.config import dump, load, pin_inputs
from components.stages import STAGES
from tests.code_graph import ROOT
from tests.integration.small import NO_LIMITS, SMALL

sys.path.insert(0, str(ROOT / "tests" / "unit"))
from test_docs_examples import NEW_FILE

pytestmark = pytest.mark.integration
OWN = (
    "data.source={kind: python, target: 'extensions.sums:SOURCE', settings: {rows: 1200}}",
    "reward.verifier={kind: python, target: 'extensions.answers:VERIFIER', rewards: [brief]}",
    "reward.weights={brief: 0.1}",
    "reward.functions={politeness: {target: 'extensions.manners:polite', weight: 0.1, conversational: true}}",
    "objective.ratio={kind: python, target: 'extensions.hinge:RATIO', settings: {slope: 0.05}}",
    "objective.advantage={kind: python, target: 'extensions.pairwise:ADVANTAGE'}",
    "objective.correction=null",
    "schedule={kind: python, target: 'extensions.newest:SCHEDULE'}",
    "audit.second=null",
    "evaluation.suites={}",
    "health.canaries={}",
    "triage.override=a model that has hardly learned anything",
    "train.steps=4",
)
VERIFIER = """
from components.rewards import Judgement, Verifier, VerifierEntry
from components.rewards.base import final_answer


class Sum(Verifier):
    def __init__(self, marker):
        self.marker = marker

    def accuracy(self, prompt, text):
        return float((final_answer(text, self.marker) or "").strip() == prompt.answer)

    def judge(self, prompt, text):
        return Judgement(self.accuracy(prompt, text), {"brief": float(len(text) < 12)})


VERIFIER = VerifierEntry(Sum)
"""


LEFT_OUT = ("data.source", "schedule", "train.steps", "evaluation.suites")
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}


def run(folder: Path, stage: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "components", stage, "--config", "params.yaml"]
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_line_of_code_from_outside_comes_to_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
    files = {found["path"]: found["body"] for found in NEW_FILE.finditer(page)}
    for path, body in {**files, "extensions/answers.py": VERIFIER}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(body, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    small = [pair for pair in SMALL if not pair.startswith(LEFT_OUT)]
    limits = [pair for pair in NO_LIMITS if not pair.startswith("health.canaries")]
    settings = pin_inputs(load(ROOT / "configs/demo.yaml", [*small, *limits, *OWN]))
    (tmp_path / "params.yaml").write_text(dump(settings), encoding="utf-8")
    for stage in STAGES:
        done = run(tmp_path, stage)
        assert done.returncode == 0, f"{stage}: {done.stderr}"
    assert json.loads((tmp_path / "out/train.json").read_text())["steps"] == 4
    signals = json.loads((tmp_path / "out/train/records.jsonl").read_text().splitlines()[-1])["signals"]
    assert 0 < signals["schedule_coverage"] < 1 and "part_brief" in signals
    assert signals["part_politeness"] == 0
    (tmp_path / "extensions/hinge.py").write_text(files["extensions/hinge.py"] + "\n# other code\n", encoding="utf-8")
    refused = run(tmp_path, "train")
    assert refused.returncode == 2 and "the code of extensions.hinge:RATIO has changed" in refused.stderr
