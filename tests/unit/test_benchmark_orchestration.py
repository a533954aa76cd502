"""What orchestration adds is whole minus whole, of runs that did all of the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.config import Settings
from tests.benchmarks import orchestration
from tests.benchmarks.orchestration import ROUNDS, Orchestration
from tests.benchmarks.section import Row
from tests.served import service


def row(whole: float, within: float) -> Row:
    return {"whole_s": whole, "within_s": within, "stages": 10}


def test_what_is_added_counts_that_stages_run_slower():
    rows = {"bare 1": row(50, 40), "prefect 1": row(70, 45), "bare 2": row(100, 90), "prefect 2": row(130, 91)}
    found = Orchestration().figures(rows)
    assert found["added"] == "25.0 s (20.0 to 30.0)"
    assert found["added_within"] == "3.0 s (1.0 to 5.0)"
    assert found["added_outside"] == "22.0 s (15.0 to 29.0)"
    assert found["bare"] == "75.0 s (50.0 to 100.0)"
    assert found["added_share"] == "35 % (30 to 40)"


def test_only_arms_of_one_round_are_compared():
    rows = {"bare 1": row(50, 40), "bare 2": row(60, 40), "prefect 2": row(70, 45)}
    assert Orchestration().figures(rows)["added"] == "10.0 s"
    assert Orchestration().figures({"bare 1": row(50, 40)})["added"] == "-"


def test_every_round_has_every_arm():
    cells = [f"{arm} {number}" for number in ROUNDS for arm in ("bare", "dvc", "prefect")]
    assert list(Orchestration().cells("full")) == cells and len(ROUNDS) == 3


@pytest.fixture
def flow_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How the run of a server that is not there ends."""
    ended = {"end_time": "2026-01-02T03:04:05+00:00", "state_type": "COMPLETED"}

    class Served:
        def __init__(self, project: Path, **extra: str) -> None:
            pass

        def __enter__(self) -> Served:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def trigger(self, deployment: str, **parameters: Any) -> str:
            return "id"

        def wait(self, id: str, seconds: float, poll: float) -> dict[str, Any]:
            return ended

        def log(self, part: str) -> str:
            return "the beginning" + 5000 * "." + "stage sft: no space left"

    monkeypatch.setattr(service, "Service", Served)
    monkeypatch.setattr(orchestration, "copy_project", lambda target: target)
    monkeypatch.setattr(orchestration, "commit_all", lambda project: project)
    monkeypatch.setattr(orchestration.time, "sleep", lambda seconds: None)
    return ended


def measured(folder: Path) -> Row:
    env = {"PYTHONPATH": "", "EVENKEEL_BENCH_CLOCK": ""}
    return orchestration.prefect(folder, Settings.model_construct(), env, "full")


def test_a_flow_run_that_completed_is_measured(tmp_path, flow_run):
    assert measured(tmp_path)["state"] == "COMPLETED"


@pytest.mark.parametrize("state", ["FAILED", "CRASHED", "CANCELLED"])
def test_a_flow_run_that_did_not_complete_is_no_measurement(tmp_path, flow_run, state):
    flow_run["state_type"] = state
    with pytest.raises(RuntimeError, match=f"ended as {state}.*stage sft: no space left") as error:
        measured(tmp_path)
    assert "the beginning" not in str(error.value)
