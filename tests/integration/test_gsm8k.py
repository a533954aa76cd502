"""Real input: GSM8K in its published form. A tiny model cannot solve it, and the pipeline must say so properly.

The file is looked for in ``EVENKEEL_GSM8K``, `data/gsm8k_train.jsonl` and `../shared/data/gsm8k_train.jsonl`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from components.config import dump, load
from components.proportion import ranked_prompts
from tests.code_graph import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.slow]
PLACES = (os.environ.get("EVENKEEL_GSM8K"), ROOT / "data/gsm8k_train.jsonl", ROOT / "../shared/data/gsm8k_train.jsonl")
FASTER = (
    "sft.steps=20",
    "admission.prompts=16",
    "triage.prompts=32",
    "train.steps=40",
    "train.checkpoint_every=20",
    "rollout.max_new_tokens=16",
)


def stage(folder: Path, name: str, *overrides: str) -> subprocess.CompletedProcess[str]:
    words = [word for pair in overrides for word in ("--set", pair)]
    return subprocess.run(
        [sys.executable, "-m", "components", name, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )


def done(folder: Path, name: str, *overrides: str) -> None:
    result = stage(folder, name, *overrides)
    assert result.returncode == 0, result.stderr


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the stages before training have run on all rows."""
    found = next((Path(place) for place in PLACES if place and Path(place).is_file()), None)
    if found is None:
        pytest.skip("GSM8K is not on this machine: set EVENKEEL_GSM8K to gsm8k_train.jsonl")
    target = tmp_path_factory.mktemp("gsm8k")
    settings = load(ROOT / "configs/gsm8k.yaml", [f"data.source.path={found.resolve()}", *FASTER])
    (target / "params.yaml").write_text(dump(settings))
    for name in ("data", "audit", "sft", "admission", "triage", "clusters"):
        done(target, name)
    return target


@pytest.mark.timeout(600)
def test_all_rows_are_read_validated_and_split_and_those_in_reach_are_clustered_and_ranked(folder: Path) -> None:
    validation = read(folder / "out/validation.json")
    assert validation["rows"] == 7473
    assert validation["codes"] == {"near_duplicate": 1}  # two cassette tapes, once on a budget and once as a gift
    assert sum(validation["splits"].values()) == 7472
    rows = [json.loads(line) for line in (folder / "out/clusters.jsonl").read_text().splitlines()]
    in_reach = ranked_prompts(load(folder / "params.yaml"))
    assert in_reach is not None
    assert len(rows) == in_reach < validation["splits"]["train"]
    by_cluster: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        by_cluster.setdefault(row["cluster"], []).append((row["rank"], row["nll"]))
    for members in by_cluster.values():
        ranks, difficulties = zip(*sorted(members), strict=True)
        assert list(ranks) == list(range(len(members)))
        assert list(difficulties) == sorted(difficulties)


@pytest.mark.timeout(600)
def test_triage_refuses_with_figures_and_training_does_not_start(folder: Path) -> None:
    triage = read(folder / "out/triage.json")
    assert triage["verdict"] == "refuse"
    assert triage["all_wrong_share"] > 0.9
    result = stage(folder, "train")
    assert result.returncode == 3
    assert "0.00 of the " in result.stderr and "groups of a step would carry a gradient" in result.stderr
    assert "triage.override" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "out/train").exists()


@pytest.mark.timeout(900)
def test_overridden_the_monitor_stops_the_run_and_the_gate_fails(folder: Path) -> None:
    override = "triage.override=to see the monitor at work"
    done(folder, "train", override)
    train = read(folder / "out/train.json")
    assert train["override"] == "to see the monitor at work"
    assert train["outcome"] == "stopped"
    assert train["stopped_by"] == "advantage_collapse"
    assert train["steps"] < 40
    for name in ("evaluate", "gate", "report"):
        done(folder, name, override)
    gate = read(folder / "out/gate.json")
    assert gate["result"] == "fail"
    results = {check["name"]: check["result"] for check in gate["checks"]}
    assert results["training health"] == "fail"
    assert results["triage"] == "inconclusive"
