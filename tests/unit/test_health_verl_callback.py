"""The monitor as a backend of verl's `Tracking`: it judges what is logged, and ends the training on request only."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from components.files import read_jsonl
from components.health.verl_callback import BACKEND, GraveVerdict, VerlLogger, watch_verl

REWARD, GRADIENT = "critic/score/mean", "actor/grad_norm"


def metrics(step: int, reward: float = 0.5, **more: Any) -> dict[str, Any]:
    return {"training/global_step": step, REWARD: reward, GRADIENT: 0.3, "actor/entropy": 0.8, **more}


@pytest.fixture
def tracking(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What stands in for verl's class where verl is not installed: backends by name, called in turn."""

    class Tracking:
        def __init__(self, project_name: str, experiment_name: str, default_backend: str = "console") -> None:
            self.logger: dict[str, Any] = {}

        def log(self, data: Any, step: int, backend: Any = None) -> None:
            for name, one in self.logger.items():
                if backend is None or name in backend:
                    one.log(data=data, step=step)

    for name in ("verl", "verl.utils", "verl.utils.tracking"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["verl.utils.tracking"].Tracking = Tracking  # type: ignore[attr-defined]
    return Tracking


def test_every_tracking_of_the_process_gets_the_monitor(tracking: Any, tmp_path: Path) -> None:
    logger = watch_verl(tmp_path)
    made = tracking("project", "run", default_backend="console")
    for step in range(1, 6):
        made.log(metrics(step), step)
    assert made.logger[BACKEND] is logger
    rows = list(read_jsonl(tmp_path / "records.jsonl"))
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[0]["signals"]["grad_norm"] == 0.3


def fails(logger: VerlLogger) -> None:
    """Log forty steps, of which the second half has gradients that are not finite and no reward."""
    for step in range(1, 41):
        broken = {GRADIENT: float("nan"), "actor/pg_loss": float("nan")} if step > 20 else {}
        logger.log(data=metrics(step, 0.0 if broken else 0.5, **broken), step=step)


def test_a_grave_verdict_ends_the_training_where_that_was_requested(tmp_path: Path) -> None:
    logger = VerlLogger(tmp_path, stop=True, say=lambda line: None)
    with pytest.raises(GraveVerdict, match=r"says (rollback|stop)"):
        fails(logger)
    assert list(read_jsonl(tmp_path / "verdicts.jsonl"))


def test_without_that_it_says_so_and_the_training_goes_on() -> None:
    lines: list[str] = []
    fails(VerlLogger(say=lines.append))
    assert any("says rollback" in line or "says stop" in line for line in lines)


@pytest.mark.parametrize("value", [np.float32(0.25), np.array(0.25), np.array([0.25]), 0.25])
def test_numbers_of_any_library_are_read(value: Any, tmp_path: Path) -> None:
    VerlLogger(tmp_path).log(metrics(1, **{GRADIENT: value}), 1)
    assert next(iter(read_jsonl(tmp_path / "records.jsonl")))["signals"]["grad_norm"] == 0.25


def test_a_monitor_that_breaks_ends_no_training(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    logger = VerlLogger(stop=True)
    monkeypatch.setattr(logger, "_judge", lambda record: 1 / 0)
    fails(logger)
    assert capsys.readouterr().err.count("the health monitor is off") == 1


def test_real_verl_logs_to_it(tmp_path: Path) -> None:
    tracking = pytest.importorskip("verl.utils.tracking", reason="verl is not installed")
    logger = watch_verl(tmp_path)
    made = tracking.Tracking("project", "run", default_backend=[])
    made.log(metrics(1), 1)
    assert made.logger[BACKEND] is logger
    assert len(list(read_jsonl(tmp_path / "records.jsonl"))) == 1
