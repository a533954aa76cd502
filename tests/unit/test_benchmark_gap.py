"""The gap between sampler and learner: which runs are made in which order, distances per token, and the tables."""

from __future__ import annotations

import math

import pytest
import torch

from components.config.corrections import IcePop, TokenTis
from components.files import append_line
from tests.benchmarks.gap.__main__ import main
from tests.benchmarks.gap.arms import ARMS, CORRECTIONS, REFERENCE, SAMPLERS, Arm, in_order
from tests.benchmarks.gap.distance import distance
from tests.benchmarks.gap.figures import FIGURES, figures, start_tables
from tests.benchmarks.gap.running import run_all
from tests.benchmarks.gap.start import main as start
from tests.benchmarks.gap.training import TASKS
from tests.benchmarks.lines import rows_of
from tests.benchmarks.section import Row

MASK = torch.tensor([[True, True], [True, False]])
ROLLOUT = torch.log(torch.tensor([[0.5, 0.2], [0.1, 0.9]]))
OLD = torch.log(torch.tensor([[0.5, 0.8], [0.05, 0.1]]))
"""Ratios 1, 4 and 1/2; the last token does not count."""


def test_every_pair_of_sampler_and_correction_is_an_arm_once():
    assert sorted(ARMS) == sorted(Arm(sampler, correction) for sampler in SAMPLERS for correction in CORRECTIONS)


def test_all_arms_with_a_gap_get_their_first_seed_before_any_gets_its_second():
    runs = list(in_order([1, 2]))
    assert len(runs) == len(set(runs)) == 2 * len(ARMS)
    gap = [(arm, seed) for arm, seed in runs if arm.sampler != "fp32" or arm == REFERENCE]
    assert [seed for _, seed in gap] == sorted(seed for _, seed in gap)
    assert runs[0] == (REFERENCE, 1) and runs[: len(gap)] == gap


@pytest.mark.parametrize("arm", ARMS, ids=", ".join)
def test_every_arm_is_a_valid_configuration_with_the_learner_in_fp32(arm):
    task = TASKS["full"]
    settings = task.settings(arm.changes, 1)
    assert (settings.train.steps, settings.learner.compute_dtype) == (20, "float32")
    assert (settings.objective.correction is None) == (arm.correction == "none")


def test_distances_are_per_token_that_counts():
    found = distance(OLD, ROLLOUT, MASK, None)
    assert found["tokens"] == 3
    assert found["mean"] == pytest.approx((0 + math.log(4) + math.log(2)) / 3)
    assert found["max"] == pytest.approx(math.log(4))
    assert found["k1"] == pytest.approx(-(math.log(4) - math.log(2)) / 3)
    assert found["k3"] == pytest.approx((0 + (3 - math.log(4)) + (-0.5 + math.log(2))) / 3)
    assert found["ess"] == pytest.approx(5.5**2 / (3 * 17.25))
    assert (found["cut"], found["ess_corrected"]) == (0, 1)


def test_a_correction_cuts_to_its_cap_or_to_nothing():
    capped = distance(OLD, ROLLOUT, MASK, TokenTis(cap=2.0))
    assert capped["cut"] == pytest.approx(1 / 3)
    assert capped["ess_corrected"] == pytest.approx(3.5**2 / (3 * 5.25))
    dropped = distance(OLD, ROLLOUT, MASK, IcePop(kind="icepop", low=0.6, high=5.0))
    assert dropped["cut"] == pytest.approx(1 / 3)
    assert dropped["ess_corrected"] == pytest.approx(5**2 / (3 * 17))


def row(sampler: str, correction: str, seed: int, final: float) -> Row:
    step = distance(OLD, ROLLOUT, MASK, None)
    return {
        "sampler": sampler,
        "correction": correction,
        "seed": seed,
        "curve": [[0, 0.2], [20, final]],
        "sampled": [0.2, 0.4],
        "distances": [step, step],
        "rules": {"mismatch": 3} if sampler == "int4" else {},
        "stopped_by": "",
        "date": "2026-01-02T03:04:05",
        "commit": "abc",
        "machine": {"processor": "a processor", "cores": 2},
        "versions": {"torch": "1", "transformers": "2"},
    }


def test_a_loss_is_taken_against_fp32_of_the_same_seed():
    rows = [
        row("fp32", "none", 1, 0.6),
        row("fp32", "none", 2, 0.8),
        row("int4", "none", 1, 0.5),
        row("int4", "none", 2, 0.7),
    ]
    found = figures(rows)
    assert set(found) == set(FIGURES)
    line = next(line for line in found["accuracy"].splitlines() if line.startswith("| int4 | none | 2 |"))
    assert "| 60.0 ± 14.1 | -10.0 ± 0.0 |" in line
    assert "| int4 | none | `mismatch` 2 of 2 | 0 |" in found["rules"]
    assert (found["runs"], found["start"]) == ("4", "20 %")


def test_differences_are_taken_between_runs_of_one_sampler_and_seed():
    rows = [
        row("int4", "none", 1, 0.5),
        row("int4", "none", 2, 0.7),
        row("int4", "TIS", 1, 0.6),
        row("int4", "TIS", 2, 1.0),
        row("int4", "TIS", 3, 0.0),  # without a partner
    ]
    lines = figures(rows)["pairs"].splitlines()[2:]
    assert lines == ["| TIS, to none | 2 | +20.0 ± 10.0 | +0.0 ± 0.0 |"]


def test_the_gap_at_the_start_has_a_line_for_each_sampler_and_one_for_each_correction_of_it():
    rows = [
        {"sampler": "int4", "correction": "none", **distance(OLD, ROLLOUT, MASK, None)},
        {"sampler": "int4", "correction": "TIS", **distance(OLD, ROLLOUT, MASK, TokenTis(cap=2.0))},
    ]
    found = start_tables(rows)
    assert "| int4 | 3 | 0.6931 |" in found["start_distance"]
    assert found["start_weights"].splitlines()[2:] == ["| int4 | TIS | 33.3 | 77.8 |"]


def test_what_was_not_run_is_not_guessed():
    assert set(figures([]).values()) | set(start_tables([]).values()) == {"not measured"}


def test_what_is_there_is_not_run_again(tmp_path, capsys, monkeypatch):
    out = tmp_path / "gap.jsonl"
    append_line(out, row("fp32", "none", 1, 0.6))
    monkeypatch.setattr("tests.benchmarks.gap.running.prepare", print)  # nothing to prepare for no run
    run_all([(REFERENCE, 1)], out, tmp_path, "smoke", jobs=1)
    assert len(rows_of(out)) == 1 and capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_runs_are_made_small_from_the_command_to_the_tables(tmp_path, capsys):
    out = tmp_path / "gap.jsonl"
    arguments = ["--smoke", "--out", str(out), "--work", str(tmp_path / "work"), "--seeds", "1"]
    main([*arguments, "--samplers", "int8", "--most", "2"])
    first, second = rows_of(out)
    assert (first["sampler"], first["correction"], second["correction"]) == ("int8", "none", "TIS")
    assert first["distances"][0]["mean"] > 0 and len(first["sampled"]) == 2
    assert "| int8 | none | 1 |" in capsys.readouterr().out
    start(["--smoke", "--out", str(tmp_path / "start.jsonl"), "--work", str(tmp_path / "work")])
    found = rows_of(tmp_path / "start.jsonl")
    assert {(row["sampler"], row["correction"]) for row in found} == {
        (sampler, correction) for sampler in SAMPLERS if "vLLM" not in sampler for correction in CORRECTIONS
    }
    means = {row["sampler"]: row["mean"] for row in found if row["correction"] == "none"}
    assert means["fp32"] < min(means[sampler] for sampler in ("bf16", "int8", "int4"))
