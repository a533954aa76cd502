"""Benchmarks of rollout and learner against their peers: what is varied, what counts, and the figures made of rows."""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import pairwise
from statistics import pvariance

import pytest

from tests.benchmarks import gpu
from tests.benchmarks.__main__ import figures as figures_of
from tests.benchmarks.__main__ import run
from tests.benchmarks.gpu import Gpu
from tests.benchmarks.gpu.flops import PEAKS, Shape, peak_flops, step_flops
from tests.benchmarks.learner import SIDES, Learner, ways
from tests.benchmarks.micro import operations
from tests.benchmarks.micro.agreement import apart
from tests.benchmarks.micro.cases import SAMPLED, UPDATED, Updated, around, rows_at_once
from tests.benchmarks.micro.figures import Sides, figures, key
from tests.benchmarks.micro.groups import groups_of, tokens_in
from tests.benchmarks.micro.rates import MORE, in_turns
from tests.benchmarks.results import Results
from tests.benchmarks.rollout import Rollout

# What is varied


@pytest.mark.parametrize("cases", [SAMPLED, UPDATED], ids=["rollout", "learner"])
def test_cases_differ_from_the_base_in_one_thing_but_for_those_that_say_so(cases):
    base = cases["base"]
    for name, case in cases.items():
        expected = {"a step of the demo": 2, "10 groups, 3 without gradient": 2}.get(name, 1)
        ignored = ("name", "memory", "whole")
        changed = [
            f.name for f in fields(case) if f.name not in ignored and getattr(case, f.name) != getattr(base, f.name)
        ]
        assert len(changed) == (0 if name == "base" else expected), (name, changed)


def test_two_cases_of_one_name_are_refused():
    with pytest.raises(ValueError, match="one name"):
        around(Updated(), [Updated(length=8)])


@pytest.mark.parametrize("section", [Rollout(), Learner(), Gpu()], ids=lambda section: section.title)
def test_every_cell_has_a_name_of_its_own_and_those_of_a_case_stand_together(section):
    for scale in ("full", "smoke"):
        cells = section.cells(scale)
        assert len(set(cells)) == len(cells) > 0
        cases = [cell.partition(": ")[0] for cell in cells]
        assert sum(a != b for a, b in pairwise(cases)) == len(set(cases)) - 1


def test_logits_all_at_once_are_measured_only_where_that_is_not_what_happens_anyway():
    assert ways(UPDATED["base"]) == ["ours", "trl"]
    assert ways(UPDATED["vocabulary 152k"]) == ["ours", "ours whole", "trl"]


# The work


def test_a_pass_has_as_many_rows_as_fit_and_as_many_as_every_other_pass():
    assert rows_at_once(rows=12, width=100, pass_tokens=1000) == 6
    assert rows_at_once(rows=7, width=100, pass_tokens=300) == 1
    assert rows_at_once(rows=4, width=100, pass_tokens=10) == 1
    assert rows_at_once(rows=4, width=100, pass_tokens=10**6) == 4


def test_groups_are_ragged_as_wide_as_the_case_says_and_share_the_rewards_that_it_says():
    case = Updated(prompts=10, group=4, length=64, vocabulary=100, without_gradient=0.3)
    groups = groups_of(case)
    assert [len(group.completions) for group in groups] == [4] * 10
    flat = [pvariance(score.reward for score in group.scores) == 0 for group in groups]
    assert sum(flat) == 3
    widest = max(len(g.prompt_ids) for g in groups) + max(len(c.token_ids) for g in groups for c in g.completions)
    assert widest == case.length
    assert len({len(c.token_ids) for g in groups for c in g.completions}) > 10
    assert tokens_in(groups) == sum(
        len(group.prompt_ids) + len(row.token_ids) for group in groups for row in group.completions
    )
    assert groups == groups_of(case)


def test_ways_take_turns_and_every_round_begins_with_another():
    order = []
    ways = {name: lambda seed, name=name: order.append((seed, name)) or 10 * seed for name in "ab"}
    found = in_turns(ways, rounds=2, warm=1)
    assert order == [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b")]
    assert {name: row["tokens"] for name, row in found.items()} == {"a": [10, 20], "b": [10, 20]}
    assert all(len(row["cpu_s"]) == 2 for row in found.values())


def test_short_rounds_are_repeated_more_often_up_to_a_bound():
    assert len(in_turns({"a": lambda seed: 1}, rounds=2, enough=1e9)["a"]["cpu_s"]) == 2 * MORE


def test_updates_count_only_where_loss_and_norm_are_the_same():
    assert apart([(0.5, 1.0)], [(0.5, 1.001)], 2e-3) == pytest.approx(1e-3, rel=0.01)
    assert apart([(1e-9, 1.0)], [(-1e-9, 1.0)], 2e-3) < 1e-6  # nothing but rounding
    for theirs in ([(0.5, 1.1)], [(0.6, 1.0)], [(math.nan, 1.0)], [(0.5, math.inf)]):
        with pytest.raises(ValueError, match="not the same work"):
            apart([(0.5, 1.0)], theirs, 2e-3)
    with pytest.raises(ValueError):
        apart([(0.5, 1.0)], [], 2e-3)


# Figures of rollout and learner


def rounds(**seconds: list[float]) -> dict:
    return {"rounds": {way: {"cpu_s": values, "tokens": [100] * len(values)} for way, values in seconds.items()}}


ROWS = {
    "base: memory of ours": {"peak_mb": 30.0, "loaded_mb": 500.0},
    "base: memory of trl": {"peak_mb": 60.0, "loaded_mb": 600.0},
    "length 256: speed": rounds(ours=[2.0], trl=[1.0]),
    "base: speed": rounds(ours=[1.0, 0.5, 0.4], trl=[2.0, 2.0, 2.0]),
}
CELLS = ["base: speed", "base: memory of ours", "base: memory of trl", "length 256: speed"]


def test_speed_is_tokens_a_second_and_the_ratio_is_taken_round_by_round():
    lines = figures(ROWS, SIDES, CELLS)["speed"].splitlines()
    assert lines[2] == "| base | 200 (100 to 250) | 50 (50 to 50) | 4.00 (2.00 to 5.00) |"
    assert lines[3] == "| length 256 | 50 | 100 | 0.50 |"


def test_lines_stand_in_the_order_of_the_cells_whatever_the_order_in_the_file():
    again = dict(sorted(ROWS.items(), reverse=True))
    assert figures(again, SIDES, CELLS) == figures(ROWS, SIDES, CELLS)


def test_memory_is_above_the_loaded_model_and_what_was_not_measured_is_not_guessed():
    lines = figures(ROWS, SIDES, CELLS)["memory"].splitlines()
    assert lines[2:] == ["| base | 30 | 60 | 0.50 |"]


def test_sentences_get_the_median_ratio_and_the_share_of_memory():
    found = figures(ROWS, SIDES, CELLS)
    assert found["ratio_base"] == found["ratio_base_trl"] == "4.0"
    assert found["ratio_length_256"] == "0.5"
    assert found["memory_base_trl"] == "0.50"


def test_a_way_that_was_never_measured_has_no_column():
    three = Sides({"ours": "ours", "whole": "whole", "trl": "TRL"})
    found = figures(ROWS, three, CELLS)
    assert "whole" not in found["speed"] + found["memory"]
    assert not [name for name in found if "whole" in name]


def test_what_large_vocabularies_cost_has_a_table_of_its_own():
    name = "vocabulary 152k"
    rows = {f"{name}: speed": rounds(**{"ours": [2.0], "ours whole": [1.0], "trl": [4.0]})}
    found = Learner().figures({**ROWS, **rows})
    assert f"| {name} | 50 | 100 | 0.50 | 25 | 2.00 |" in found["logits_speed"]
    assert "base" not in found["logits_speed"]
    assert f"| {name} | 50 | 25 | 2.00 |" in found["speed"]


def test_a_case_that_could_not_be_measured_says_why():
    found = figures({"base: speed": {"skipped": "TRL is not installed"}}, SIDES, CELLS)
    assert "| base | TRL is not installed |" in found["speed"]
    assert "ratio_base" not in found


def test_names_of_figures_hold_nothing_that_a_mark_cannot():
    assert key("10 groups, 3 without gradient") == "10_groups_3_without_gradient"


# GPU


def test_model_flops_are_those_of_layers_needed_logits_and_attention_to_what_lies_before():
    shape = Shape("s", hidden=10, intermediate=1, layers=3, heads=1, vocabulary=7, rows=2, prompt=4, response=6)
    layers, logits = 6 * (1000 - 70) * 20, 6 * 70 * 2 * 6
    pairs = sum(range(1, 11)) + sum(range(10))  # of a token and those before it, about half of 10 x 10
    attention = 2 * 3 * 3 * 2 * 2 * 10 * (pairs / 2)  # rows, passes, layers, products, FLOPs, width
    assert step_flops(shape, 1000) == layers + logits + attention


def test_a_gpu_is_known_by_the_words_of_its_name_the_longer_ones_first():
    assert peak_flops("NVIDIA H200") == peak_flops("NVIDIA H100 80GB HBM3") == 989e12
    assert peak_flops("NVIDIA H100 PCIe") == 756e12
    assert peak_flops("NVIDIA A100-SXM4-80GB") == 312e12
    assert peak_flops("NVIDIA L40S") == 362e12 != peak_flops("NVIDIA L4")
    assert peak_flops("NVIDIA H20") == 148e12
    assert peak_flops("CPU") is None
    for number, name in enumerate(PEAKS):
        assert peak_flops(f"NVIDIA {name}") == list(PEAKS.values())[number]


def updated(seconds: float, norm: float = 1.0, **changed) -> dict:
    row = {
        "device": "NVIDIA H200",
        "parameters": 500_000_000,
        "tokens": 1000,
        "model_flops": 100e12,
        "peak_flops_per_s": 1000e12,
        "seconds": [seconds] * 3,
        "peak_gib": 10.0,
        "loss": 0.0,
        "grad_norm": norm,
    }
    return {**row, **changed}


def test_mfu_is_model_flops_a_second_over_the_peak_of_the_device():
    rows = {"0.5B: torch": updated(0.25), "0.5B: TRL": updated(0.5)}
    found = Gpu().figures(rows)
    assert found["mfu_0.5B"] == "40 %"
    assert found["ratio_0.5B"] == "2.00"
    line = "| 0.5B (0.50 G parameters) | torch | 250 (250 to 250) | 4,000 | 400.0 | 40.0 % | 10.0 | 1.0000 |"
    assert f"| NVIDIA H200 {line}" in found["updates"]


def test_an_update_with_another_gradient_is_named_and_not_compared():
    found = Gpu().figures({"0.5B: torch": updated(0.25), "0.5B: TRL": updated(0.5, norm=1.2)})
    assert "not the same work" in found["updates"]
    assert "ratio_0.5B" not in found


def test_a_device_whose_peak_is_unknown_has_no_mfu():
    found = Gpu().figures({"0.5B: torch": updated(0.25, peak_flops_per_s=None)})
    assert "mfu_0.5B" not in found
    assert "| 400.0 | - |" in found["updates"]


def test_what_does_not_fit_into_memory_keeps_its_line():
    found = Gpu().figures({"0.5B: torch": updated(0.2), "0.5B: TRL": {"skipped": "out of memory: 3 GiB"}})
    assert "| 0.5B | TRL | out of memory: 3 GiB |" in found["updates"]


def test_a_hand_over_that_was_not_measured_says_why():
    found = Gpu().figures({"0.5B: hand-over": {"skipped": "no time"}})
    assert "| 0.5B | no time |" in found["hand_over"]


def test_an_adapter_is_other_work_and_its_frozen_weights_have_no_gradient():
    found = Gpu().figures({"0.5B: torch": updated(0.25), "0.5B: torch, LoRA": updated(0.2, norm=0.1)})
    assert "0.1000, other weights" in found["updates"]
    shape = Shape("", hidden=2, intermediate=4, layers=3, heads=1, vocabulary=10, rows=2, prompt=4, response=6)
    assert step_flops(shape, 1000) - step_flops(shape, 1000, frozen=True) == 2 * (980 * 20 + 20 * 12)


def test_sampling_is_tokens_a_second_and_a_hand_over_bytes_a_second_with_the_device():
    sampled = {"device": "NVIDIA H200", "rows": 64, "tokens": [100, 200], "seconds": [0.1, 0.1], "peak_gib": 9.0}
    handed = {"device": "NVIDIA H200", "bytes": 10**9, "first_s": 8.0, "seconds": [0.01, 0.01, 0.02]}
    found = Gpu().figures({"0.5B: sampling, engine": sampled, "0.5B: hand-over": handed})
    assert "| NVIDIA H200 | 0.5B | engine | 1,500 (1,000 to 2,000) | 9.0 |" in found["sampling"]
    assert "| NVIDIA H200 | 0.5B | 1.00 | 8,000 | 10.0 (10.0 to 20.0) | 100.0 |" in found["hand_over"]


def test_without_a_gpu_nothing_is_measured_and_nothing_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(gpu, "has_devices", lambda: False)
    run(["gpu"], results=tmp_path)
    assert capsys.readouterr().out == "gpu: not measured: no GPU\n"
    assert list(tmp_path.iterdir()) == []
    assert figures_of(tmp_path)["gpu.updates"] == "not measured: no GPU"


def test_a_file_of_skipped_cells_is_no_obstacle_on_a_machine_that_can_measure_them(tmp_path):
    path = tmp_path / "gpu.json"
    Results("gpu", "full", machine={"gpu": "another"}, rows={"0.5B: torch": {"skipped": gpu.NO_GPU}}).write(path)
    assert Results.resumed(path, "gpu", "full").rows == {}


# Single operations


def test_every_operation_is_compared_with_what_it_replaces(monkeypatch, capsys):
    monkeypatch.setattr(operations, "ROUNDS", 1)
    monkeypatch.setattr(operations, "TOKENS", 64)
    monkeypatch.setattr(operations, "onednn", lambda: False)  # products are another library's on other processors
    operations.main()
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split(" ")[1] for line in lines] == ["attention", "RMSNorm"]
    assert all(float(cell) > 0 for line in lines for cell in line.split("|")[2:4])
