"""Benchmarks on the real model: what is measured, and what is said of an aim."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks import real
from tests.benchmarks.real import Real, aims
from tests.benchmarks.real.products import PRODUCTS
from tests.benchmarks.section import Row

CELL = "sampling 4 x 8 rows of 64, fp32: speed"
UPDATE = "update of 2 x 8 rows of 128"


def rounds(**seconds: float) -> Row:
    return {"rounds": {way.replace("_", " "): {"cpu_s": [s], "tokens": [100]} for way, s in seconds.items()}}


def lines(table: str) -> list[str]:
    return table.splitlines()[2:]


def test_both_sides_of_every_case_are_measured_in_one_cell_and_their_memory_in_one_each():
    cells = list(Real().cells("full"))
    assert len(set(cells)) == len(cells)
    assert f"{UPDATE}, bf16: speed" in cells
    place = cells.index(f"{UPDATE}, bf16: speed")
    assert cells[place + 1 : place + 3] == [f"{UPDATE}, bf16: memory of {way}" for way in ("ours bf16", "trl bf16")]
    assert [cell for cell in cells if cell.endswith(" 1")] == ["trl 1", "same 1", "own 1"]


def test_without_the_model_every_cell_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(real, "missing", lambda: "models/x is missing: make model")
    rows = {cell: Real().measure(cell, "full", tmp_path) for cell in Real().cells("full")}
    assert set(Real().figures(rows).values()) == {"models/x is missing: make model"}


@pytest.mark.parametrize(("seconds", "said"), [(1.0, "reached"), (3.0, "missed")])
def test_an_aim_is_reached_by_the_median_ratio(seconds, said):
    found = Real().figures({CELL: rounds(engine=seconds, generate=4.0)})
    ratio = f"{4 / seconds:.2f}"
    assert lines(found["aims"]) == [f"| sampling 4 x 8 rows of 64, fp32 | at least 2 | {ratio} | {said} |"]
    assert found["missed"] == ("none" if said == "reached" else "sampling 4 x 8 rows of 64, fp32")


def test_memory_is_that_of_the_whole_process_and_has_an_upper_bound():
    rows: dict[str, Any] = {
        f"{UPDATE}, fp32: speed": rounds(ours=1.0, trl=3.0),
        f"{UPDATE}, fp32: memory of ours": {"loaded_mb": 1000.0, "peak_mb": 2000.0},
        f"{UPDATE}, fp32: memory of trl": {"loaded_mb": 1000.0, "peak_mb": 3000.0},
    }
    found = Real().figures(rows)
    assert lines(found["aims"]) == [
        f"| {UPDATE}, fp32, against TRL, fp32 | at least 2.5 | 3.00 | reached |",
        f"| memory of that {UPDATE}, fp32, against TRL, fp32 | at most 0.6 | 0.75 | missed |",
    ]
    assert lines(found["memory"])[0] == f"| {UPDATE}, fp32 | learner, fp32 | 3,000 | 2,000 |"


def test_bf16_is_compared_with_trl_in_bf16_and_in_fp32():
    found = Real().figures({f"{UPDATE}, bf16: speed": rounds(ours_bf16=1.0, trl_bf16=2.0, trl=4.0)})
    assert [line.split(" | ")[2:] for line in lines(found["aims"])] == [["2.00", "missed |"], ["4.00", "reached |"]]


def test_what_was_not_measured_is_no_aim_that_was_missed():
    phases = dict.fromkeys(("rollout", "scoring", "log-probs", "update", "sync", "bookkeeping"), 0.1)
    row = {"seconds": 1.0, "steps": 1, "completions": 1, "curve": [(1, 1.0, 0.1)], "phases_s": phases}
    found = Real().figures({"trl 1": row, "same 1": row})
    assert (found["missed"], lines(found["aims"])) == ("none", [])
    assert "| TRL `GRPOTrainer` | 0 of 1 |" in found["time"]


@pytest.mark.parametrize("scale", PRODUCTS)
def test_the_task_is_the_same_for_both_sides_but_for_our_own_recipe(scale):
    task = PRODUCTS[scale]
    same, own = task.settings(task.same, 1), task.settings(task.own, 1)
    assert (same.objective.correction, same.learner.updates_per_step) == (None, 1)
    assert (own.learner.compute_dtype, own.learner.updates_per_step) == ("bfloat16", 2)
    assert same.learner.lr == own.learner.lr and aims.TARGET == 0.4
