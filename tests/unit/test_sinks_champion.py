"""A champion in MLflow's registry: who decides where it goes, and that a failure changes nothing about the decision."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.config import dump, load
from components.errors import InputError
from components.files import write_text
from flows.governance import decisions, model_registry
from flows.governance.model_registry import register_champion
from tests.code_graph import ROOT

DIGEST, EVIDENCE = "a" * 64, "e" * 64
MODEL = "sinks.tracking={kind: mlflow, uri: 'http://candidate.example', model: arithmetic}"
CALLS: list[dict[str, Any]] = []


def record(**changes: Any) -> Any:
    fields = {"effective": True, "digest": DIGEST, "evidence": EVIDENCE, "number": 3, "by": "Ada", "at": "2026-08-01"}
    return SimpleNamespace(**{**fields, "gate": {"result": "pass"}, **changes})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store whose champion is `DIGEST`, with settings that name a model; MLflow seems to be there and to answer."""
    write_text(tmp_path / "params.yaml", dump(load(ROOT / "configs/demo.yaml", [MODEL])))
    monkeypatch.setattr(model_registry, "champion", lambda store: SimpleNamespace(digest=DIGEST))
    monkeypatch.setattr("components.sinks.base.find_spec", lambda name: object())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://decider.example")
    answers(monkeypatch, lambda: subprocess.CompletedProcess([], 0, "7", ""))
    return SimpleNamespace(tree=lambda digest: tmp_path)


def answers(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    CALLS.clear()

    def run(command: list[str], **options: Any) -> Any:
        CALLS.append({**json.loads(options["input"]), "uri": options["env"]["MLFLOW_TRACKING_URI"]})
        return answer()

    monkeypatch.setattr(model_registry.subprocess, "run", run)


def test_it_goes_to_the_server_of_whoever_decides_and_not_to_the_one_that_the_candidate_names(store: Any) -> None:
    assert register_champion(store, record()) == ["registered with MLflow: model arithmetic, version 7, alias champion"]
    tags = {"evidence": EVIDENCE, "record": "3", "by": "Ada", "at": "2026-08-01", "gate": "pass"}
    assert [{"model": "arithmetic", "digest": DIGEST, "tags": tags, "uri": "http://decider.example"}] == CALLS


@pytest.mark.parametrize(
    "changes", [{"effective": False}, {"digest": "b" * 64}, {"evidence": None}], ids=["rejected", "superseded", "old"]
)
def test_what_is_not_the_champion_is_not_registered(store: Any, changes: dict[str, Any]) -> None:
    assert (register_champion(store, record(**changes)), CALLS) == ([], [])


def test_a_candidate_without_a_model_is_not_registered(store: Any) -> None:
    write_text(store.tree("") / "params.yaml", dump(load(ROOT / "configs/demo.yaml")))
    assert (register_champion(store, record()), CALLS) == ([], [])


def away() -> Any:
    raise subprocess.TimeoutExpired("mlflow", 60)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda: subprocess.CompletedProcess([], 1, "", "Traceback\nConnectionError: refused\n"), "refused"),
        (lambda: subprocess.CompletedProcess([], -9, "", ""), "exit code -9"),
        (away, "no answer within 60 seconds"),
    ],
)
def test_a_server_that_fails_is_a_line(store: Any, monkeypatch: pytest.MonkeyPatch, answer: Any, says: str) -> None:
    answers(monkeypatch, answer)
    (line,) = register_champion(store, record())
    assert line.startswith("not registered as model arithmetic of MLflow: ") and says in line


def test_without_a_server_or_the_package_the_line_says_what_is_missing(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.sinks.base.find_spec", lambda name: None)
    assert "the package mlflow is not installed" in register_champion(store, record())[0]
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert "MLFLOW_TRACKING_URI is not set here" in register_champion(store, record())[0]


def test_evidence_that_cannot_be_read_is_a_line(store: Any) -> None:
    def gone(digest: str) -> Path:
        raise InputError("the evidence is gone")

    store.tree = gone
    assert register_champion(store, record()) == ["the champion was not registered with MLflow: the evidence is gone"]


def test_a_decision_at_a_terminal_reports_it_with_what_waited(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "resume", lambda *_: ["calm-owl"])
    context: Any = SimpleNamespace(store=store, project=Path())
    found = decisions._conclude(context, DIGEST, record)
    assert [line.split()[0] for line in found.notes] == ["registered", "flow"]
