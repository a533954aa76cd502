"""Figures of cost curves: made of rows alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.files import read_jsonl
from tests.benchmarks.growth import Growth
from tests.benchmarks.growth.curve import FAMILIES, UNITS, Cost, Curve, label
from tests.benchmarks.growth.curves import CURVES
from tests.benchmarks.growth.logs import ledger, records, written
from tests.benchmarks.growth.manifests import profile
from tests.benchmarks.growth.measures import medians, peak
from tests.benchmarks.growth.pods import crowd, without_cause
from tests.benchmarks.growth.tables import UNEXPLAINED, amount, figures
from tests.benchmarks.section import Row, skipped

SIZES = (10, 100, 1000, 10**4)


def never(size: int, folder: Path) -> Row:
    raise AssertionError("figures are made of rows")


def curve(*costs: Cost, **other: Any) -> Curve:
    return Curve("steps", "toy", SIZES, 10, never, costs, **other)


def rows(**costs: Any) -> dict[str, Row]:
    """What a toy costs at every size, by functions of it."""
    return {f"toy {label(size)}": {"toy": {name: of(size) for name, of in costs.items()}} for size in SIZES}


def test_a_table_has_the_cost_at_every_size_its_exponent_and_what_one_of_them_costs():
    found = figures({"toy": curve(Cost("read_s", "read"))}, rows(read_s=lambda size: size / 1000))
    assert found["steps"].splitlines() == [
        "|  |  | 10 | 100 | 1,000 | 10,000 | exponent | of the last two | a step |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| toy | read | 10 ms | 100 ms | 1 s | 10 s | 1.00 | 1.00 | 1 ms |",
    ]
    assert found["prompts"] == "Not measured."


def test_what_is_below_the_floor_has_no_slope():
    found = figures({"toy": curve(Cost("read_s", "read"))}, rows(read_s=lambda size: 0.04 if size < 1000 else 0.07))
    assert found["toy_read_exponent"] == "0.00"
    flat = figures({"toy": curve(Cost("read_s", "read"))}, rows(read_s=lambda size: 0.04))
    assert flat["toy_read_exponent"] == "-"


def test_a_cost_that_does_not_grow_is_not_divided_by_the_number_of_steps():
    found = figures({"toy": curve(Cost("step_ms", "one more step"))}, rows(step_ms=lambda size: 0.5))
    assert found["steps"].splitlines()[-1].endswith("| 500 µs | 0.00 | 0.00 | - |")


def test_a_floor_is_in_seconds_or_bytes_whatever_the_unit_of_the_field():
    assert Cost("read_ms", "", floor=2.0).least == pytest.approx(2000)
    assert Cost("peak_mb", "", floor=2e6).least == pytest.approx(2)


def test_sizes_that_are_not_measured_yet_are_left_out():
    measured = {name: row for name, row in rows(read_s=lambda size: float(size)).items() if name != "toy 100"}
    found = figures({"toy": curve(Cost("read_s", "read"))}, measured)
    assert "| 10 | 1,000 | 10,000 |" in found["steps"]
    assert "toy_read_100" not in found


def test_a_cell_that_was_skipped_says_why_and_is_no_point():
    measured = rows(read_s=lambda size: float(size)) | {"toy 1e4": {"toy": skipped("no room")}}
    found = figures({"toy": curve(Cost("read_s", "read"))}, measured)
    assert found["skipped"] == "toy 1e4: no room"
    assert "10,000" not in found["steps"]


def test_a_cost_that_grows_faster_than_linearly_is_listed_with_its_reason():
    cost = Cost("read_s", "read", why="every step reads all before it")
    found = figures({"toy": curve(cost)}, rows(read_s=lambda size: size**2 / 1000))
    assert "| toy: read | 2.00 | 2.00 | every step reads all before it |" in found["verdicts"]


def test_without_a_reason_it_says_so_loudly():
    found = figures({"toy": curve(Cost("read_s", "read"))}, rows(read_s=lambda size: size**1.2))
    assert UNEXPLAINED == "**not explained**"
    assert f"| toy: read | 1.20 | 1.20 | {UNEXPLAINED} |" in found["verdicts"]


def test_what_begins_to_be_steep_at_the_largest_size_is_listed_though_a_fit_over_all_sizes_hides_it():
    costs = {10: 0.1, 100: 0.9, 1000: 8.0, 10**4: 130.0}
    found = figures({"toy": curve(Cost("read_s", "read"))}, rows(read_s=costs.__getitem__))
    assert (found["toy_read_exponent"], found["toy_read_last_exponent"]) == ("1.03", "1.21")
    assert "| toy: read | 1.03 | 1.21 |" in found["verdicts"]


def test_what_is_steep_over_all_sizes_is_listed_though_it_no_longer_is_at_the_end():
    costs = {10: 0.1, 100: 2.0, 1000: 40.0, 10**4: 400.0}
    found = figures({"toy": curve(Cost("read_s", "read"))}, rows(read_s=costs.__getitem__))
    assert "| toy: read | 1.21 | 1.00 |" in found["verdicts"]


def test_the_last_two_sizes_have_no_exponent_where_one_of_them_is_below_the_floor():
    costs = {10: 0.1, 100: 0.2, 1000: 0.04, 10**4: 0.3}
    found = figures({"toy": curve(Cost("read_s", "read"))}, rows(read_s=costs.__getitem__))
    assert found["toy_read_last_exponent"] == "-"


def test_the_threshold_is_a_figure_so_that_the_page_can_state_it():
    assert figures({}, {})["steep"] == "1.1"


def test_a_linear_cost_is_no_verdict_and_neither_is_one_that_falls():
    costs = Cost("read_s", "read"), Cost("each_ms", "each")
    found = figures({"toy": curve(*costs)}, rows(read_s=lambda size: float(size), each_ms=lambda size: 1e3 / size))
    assert found["verdicts"].startswith("None of the 2 costs")


def test_single_figures_are_named_by_curve_cost_and_size():
    costs = Cost("draw_ms", "draw"), Cost("state_kb", "state")
    found = figures({"toy": curve(*costs)}, rows(draw_ms=lambda size: size / 1e4, state_kb=lambda size: 2.0 * size))
    assert (found["toy_draw_1e4"], found["toy_state_1e4"], found["toy_state_100"]) == ("1 ms", "20 MB", "200 kB")


def test_rows_a_second_are_a_figure_of_their_own():
    found = figures({"toy": curve(Cost("stage_s", "stage"))}, rows(stage_s=float, rows_per_s=lambda size: 2500.4))
    assert found["toy_rows_per_s_1e3"] == "2,500"


def test_plain_tools_are_compared_with_speeds_and_the_ratio():
    toy = curve(Cost("put_s", "put"), plain_tools=(("put_s", "plain_s", "cp"),))
    found = figures({"toy": toy}, rows(put_s=lambda size: size / 100, plain_s=lambda size: size / 200))
    assert "| toy | put | 1,000 | 10.00 s (100 MB/s) | cp | 5.00 s (200 MB/s) | 2.00 |" in found["plain_tools"]


@pytest.mark.parametrize(
    ("value", "said"),
    [(123.4, "123 s"), (1.5, "1.5 s"), (0.00213, "2.13 ms"), (4e-7, "400 ns"), (0.0, "0 ns")],
)
def test_amounts_have_three_digits_and_a_unit(value, said):
    scale = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    assert amount(value, scale) == said


def test_every_curve_is_of_a_family_with_sizes_that_grow_and_units_that_are_known():
    for name, one in CURVES.items():
        assert one.family in FAMILIES, name
        assert list(one.sizes) == sorted(one.sizes) and one.smoke <= one.sizes[-1], name
        assert all(cost.unit in UNITS and cost.name for cost in one.costs), name
        assert {field for field, _, _ in one.plain_tools} <= {cost.field for cost in one.costs}, name


def test_curves_do_not_share_a_title_so_that_tables_tell_them_apart():
    assert len({(one.family, one.title) for one in CURVES.values()}) == len(CURVES)


def test_a_full_cell_is_one_curve_at_one_size_and_smoke_is_one_process():
    section = Growth()
    assert {"ads 1e6", "folder 10", "pods 1e3"} <= set(section.cells("full"))
    assert section.cells("smoke") == ["everything"]


def test_figures_of_nothing_are_figures_that_say_so():
    found = Growth().figures({})
    assert all(found[family] == "Not measured." for family in FAMILIES)
    assert found["verdicts"].startswith("None of the 0 costs")


def test_the_peak_is_what_a_block_takes_beyond_what_was_there():
    kept = bytearray(30_000_000)
    with peak() as memory:
        bytearray(60_000_000)
    assert 55 < memory.mb < 90
    assert len(kept) == 30_000_000


def test_a_median_is_taken_field_by_field():
    assert medians([{"a_s": 1.0, "b_s": 9.0}, {"a_s": 3.0, "b_s": 7.0}, {"a_s": 2.0, "b_s": 8.0}]) == {
        "a_s": 2.0,
        "b_s": 8.0,
    }


def test_a_log_is_written_as_its_reader_expects_it(tmp_path):
    path = written(5, tmp_path)
    assert [row["step"] for row in read_jsonl(path)] == list(range(5))


def test_a_log_has_its_warnings_and_the_ledger_an_answer_to_each():
    rows = list(records(200))
    warned = [row["step"] for row in rows if row["notes"]["verdicts"]]
    responses = [entry["step"] for entry in ledger(200) if entry["kind"] == "response"]
    assert (warned, len(ledger(200))) == (responses, 2 * len(warned))
    assert len({tuple(row["signals"]) for row in rows}) == 1


@pytest.mark.parametrize("pods", [3, 100, 1000])
def test_a_plan_is_asked_for_as_many_pods_as_the_size_says(pods):
    engine, ranks = (int(one.partition("=")[2]) for one in profile(pods)[1:])
    assert engine + ranks // 8 == pods


def test_a_crowd_is_one_pod_over_and_over_each_with_events_of_its_own():
    found = without_cause(crowd("image-not-there", "learner", 5))
    names = [pod["metadata"]["name"] for pod in found["pods"]]
    assert len(set(names)) == 5
    assert {event["involvedObject"]["name"] for event in found["events"]} == set(names)
    waits = [pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"] for pod in found["pods"]]
    assert set(waits) == {'Back-off pulling image "localhost:1/nope"'}


def test_a_reason_is_said_only_while_the_growth_is_steep():
    cost = replace(Cost("read_s", "read"), why="because")
    assert "because" not in figures({"toy": curve(cost)}, rows(read_s=float))["verdicts"]
