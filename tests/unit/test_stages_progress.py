"""A stage whose batches take long: while one is sampled, scored or judged, the stage says how far it is."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from factories import Judge, parity, settings, workspace

from components import progress
from components.learner import scoring
from components.rollout import torch_engine
from components.stages import run_stage, triage

INTERVAL, PAUSE = 0.1, 0.4
"""Seconds: of silence that a stage keeps at most, in place of 2; and that every step of the slow parts takes."""
Event = dict[str, Any]


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "events"
    monkeypatch.setenv(progress.PROGRESS_VARIABLE, str(path))
    monkeypatch.setattr(progress, "INTERVAL", INTERVAL)
    monkeypatch.setattr(progress, "FIRST", INTERVAL)
    return path


def read(path: Path) -> list[Event]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def slow(real: Callable[..., Any]) -> Callable[..., Any]:
    def slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(PAUSE)
        return real(*arguments, **options)

    return slowly


def counts(events: list[Event], pattern: str) -> list[int]:
    """The first number of the pattern in every line that has it, in order."""
    found = (re.match(pattern, event.get("work", "")) for event in events)
    return [int(match[1].replace(",", "")) for match in found if match]


def test_a_stage_says_how_far_it_is_inside_one_batch_of_sampling_and_of_scoring(tmp_path, events, monkeypatch):
    layout = workspace(tmp_path / "run")
    monkeypatch.setattr(triage, "Scorer", lambda *_: Judge(parity))
    monkeypatch.setattr(torch_engine, "choose", slow(torch_engine.choose))
    monkeypatch.setattr(scoring, "score", slow(scoring.score))
    run_stage("triage", settings(rollout={"max_new_tokens": 8}), layout)
    said = read(events)
    assert {event["stage"] for event in said} == {"triage"}

    sampled = counts(said, r"sampling ([\d,]+) of at most [\d,]+ tokens")
    assert len(set(sampled)) >= 4 and sampled == sorted(sampled), "of 8 steps of one batch"
    scored = counts(said, r"scoring ([\d,]+) of 16 rows")
    assert len(set(scored)) >= 2 and scored == sorted(scored), "of its micro-batches"
    inside = [event for event in said if "sampling" in event.get("work", "")]
    assert {(event["done"], event["total"]) for event in inside} == {(0, 4)}, "meanwhile the stage does not advance"
    assert any(re.search(r"/s, \d+:\d\d left", event["work"]) for event in inside)


def test_a_stage_says_that_it_is_at_work_where_nothing_is_counted(tmp_path, events, monkeypatch):
    monkeypatch.setattr(triage, "run", lambda *_: time.sleep(1.5))
    run_stage("triage", settings(), workspace(tmp_path / "run"))
    said = read(events)
    assert len(said) >= 3
    assert all(re.match(r"working, 0:0\d|loading the code", event["work"]) for event in said)
