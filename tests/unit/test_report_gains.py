"""The forest plot: which rows there are, how sure they are, and where they are drawn."""

from __future__ import annotations

from typing import Any

import pytest
import report_fixture as fixture
from hypothesis import given
from hypothesis import strategies as st

from components.report.curve import curves, pass_curve
from components.report.drawing import axis_over
from components.report.gains import Gain, forests, unpaired
from components.report.page import environment
from components.report.tables import other_figures

GAIN = {"mean": 0.05, "low": 0.01, "high": 0.09, "confidence": 0.95, "detectable": 0.06}
SMALL = 30
"""`evaluation.small`."""


def figures(**more: Any) -> dict[str, Any]:
    return {
        "prompts": 512, "samples": 4, "k": 4, "sft": fixture.side(0.331), "trained": fixture.side(0.884),
        "gain": GAIN, "greedy_gain": {**GAIN, "mcnemar_p": 0.0004}, **more,
    }  # fmt: skip


def with_champion() -> dict[str, Any]:
    over = {
        "gain_over_champion": {**GAIN, "mean": -0.01, "low": -0.04, "high": 0.02},
        "greedy_gain_over_champion": None,
    }
    return figures(champion=fixture.side(0.8), **over)


def test_gains_are_shown_overall_by_family_and_by_difficulty_over_sft_and_over_the_champion() -> None:
    sft, champion = forests(with_champion(), SMALL)
    for plot in (sft, champion):
        assert list(plot.groups) == ["All test prompts", "pass@1 by family", "pass@1 by difficulty"]
        assert len(plot.groups["pass@1 by family"]) == 6
    assert [plot.before for plot in (sft, champion)] == ["SFT", "Champion"]
    assert [plot.name for plot in forests(figures(), SMALL)] == ["sft"]
    assert forests(None, SMALL) == []


def test_a_suite_is_a_group_of_its_own_and_what_it_was_not_asked_has_no_row() -> None:
    suite = figures(sft={"greedy": 0.4}, trained={"greedy": 0.5}, prompts=100)
    (plot,) = forests(figures(suites={"gsm8k": suite}), SMALL)
    assert [row.name for row in plot.groups["Suite gsm8k"]] == ["accuracy, greedy"]


def test_an_interval_of_few_prompts_is_named_and_does_not_stretch_the_axis() -> None:
    few = {"a": {"prompts": 400, "pass_at_1": 0.5}, "b": {"prompts": 3, "pass_at_1": 0.5}}
    (plot,) = forests(
        figures(sft={**fixture.side(0.5), "families": few}, trained={**fixture.side(0.5), "families": few}), SMALL
    )
    rows = {row.name: row for row in plot.groups["pass@1 by family"]}
    assert rows["b"].words == "no clear change, few prompts"
    assert rows["b"].high is not None and not plot.axis.holds(rows["b"].high)
    drawn = str(environment().get_template("macros.jinja").module.forest(rows["b"], plot.axis))
    assert drawn.count('class="interval') == 1, "the line runs off and has no ends"


def over_few(low: float, high: float, prompts: int, **more: Any) -> Gain:
    """The row of a slice of so many prompts."""
    gain = {"mean": (low + high) / 2, "low": low, "high": high}
    rows = {"a": {"prompts": 400, "pass_at_1": 0.5}, "b": {"prompts": prompts, "pass_at_1": 0.5, "gain": gain, **more}}
    sides = {side: {**fixture.side(0.5), "families": rows} for side in ("sft", "trained")}
    return forests(figures(**sides), SMALL)[0].groups["pass@1 by family"][1]


def test_what_fewer_prompts_show_than_the_setting_asks_for_is_never_clear() -> None:
    assert over_few(-0.3, -0.1, SMALL).words == "worse"
    assert over_few(-0.3, -0.1, SMALL - 1).words == "no clear change, few prompts"
    assert over_few(-0.3, -0.1, SMALL, small=True).few, "the evaluation's own flag counts"
    flagged = {"gain": {**GAIN, "small": True}, "greedy_gain": {**GAIN, "small": False}}
    rows = forests(figures(**flagged), SMALL)[0].groups["All test prompts"]
    assert [row.few for row in rows[:2]] == [True, False]
    whole = {"prompts": 512, "gain": {**GAIN, "n": 2, "low": 0.5, "high": 0.5}}
    assert not forests(figures(**whole), SMALL)[0].groups["All test prompts"][0].clear, "two were scorable under both"
    assert forests(figures(**whole), 2)[0].groups["All test prompts"][0].clear


def test_an_interval_without_width_is_said_to_be_none_for_nothing_varied() -> None:
    same = over_few(0.0, 0.0, 100)
    assert (same.words, same.clear) == ("no interval: no prompt came out differently", False)
    assert over_few(0.5, 0.5, 100).interval == "no interval: all prompts changed alike"
    assert over_few(-1.0, -1.0, 1).interval == "too few prompts for an interval"
    assert over_few(-0.1, 0.1, 100).interval.replace("\u00a0", " ") == "95 % interval −10.0 to +10.0"


def test_where_all_rows_are_of_few_prompts_the_axis_holds_their_intervals() -> None:
    (plot,) = forests(figures(prompts=8, sft={"pass_at_1": 0.5}, trained={"pass_at_1": 0.5}), SMALL)
    assert plot.axis.holds(GAIN["high"])


def test_a_slice_that_holds_everything_is_left_out() -> None:
    sides = {
        side: {**fixture.side(0.5), "sources": {"one": {"prompts": 9, "pass_at_1": 0.5}}} for side in ("sft", "trained")
    }
    assert "pass@1 by source" not in forests(figures(**sides), SMALL)[0].groups


def test_a_paired_interval_is_taken_as_it_was_computed_and_a_wider_one_where_there_is_none() -> None:
    rows = forests(figures(), SMALL)[0].groups["All test prompts"]
    assert (rows[0].low, rows[0].high, rows[0].paired, rows[0].detectable) == (0.01, 0.09, True, 0.06)
    assert rows[1].p == 0.0004
    assert not rows[2].paired and rows[2].low is not None


def test_newcombes_interval_is_that_of_his_paper() -> None:
    assert unpaired(0.3, 0.9, 10) == pytest.approx((0.1705, 0.8090), abs=5e-5), "table II (c), 9/10 - 3/10"
    assert unpaired(0.0, 1.0, 10) == pytest.approx((0.6075, 1.0), abs=5e-5), "table II (h), 10/10 - 0/10"


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 5000))
def test_an_interval_holds_its_difference_and_stays_between_minus_one_and_one(
    before: float, after: float, n: int
) -> None:
    low, high = unpaired(before, after, n)
    assert -1 - 1e-9 <= low <= after - before + 1e-9
    assert after - before - 1e-9 <= high <= 1 + 1e-9


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.1, 0.3, "better"), (-0.3, -0.1, "worse"), (-0.1, 0.3, "no clear change"), (None, None, "no interval")],
)
def test_only_an_interval_without_zero_is_called_better_or_worse(
    low: float | None, high: float | None, words: str
) -> None:
    mean = 0.1 if low is None else (low + (high or 0)) / 2
    assert Gain("x", 100, 0.1, 0.2, mean, low, high).words == words
    assert Gain("x", 10, None, 0.2).words == "not measured"


@given(st.lists(st.floats(-1, 1), max_size=8))
def test_the_axis_holds_zero_and_every_value_and_has_few_round_ticks(values: list[float]) -> None:
    axis = axis_over(values)
    assert axis.low <= min([0.0, *values]) + 1e-9 and max([0.0, *values]) - 1e-9 <= axis.high
    ticks = list(axis.ticks())
    assert 2 <= len(ticks) <= 9
    assert any(abs(tick) < 1e-9 for tick in ticks)
    assert [float(axis.at(tick)[:-1]) for tick in (axis.low, axis.high)] == [0, 100]


def test_a_row_is_drawn_with_band_interval_and_middle_and_is_read_out_in_words() -> None:
    plot = forests(figures(), SMALL)[0]
    drawn = str(environment().get_template("macros.jinja").module.forest(plot.groups["All test prompts"][0], plot.axis))
    assert 'aria-label="pass@1, sampled: +5.0 points, better"' in drawn
    assert 'class="band"' in drawn and drawn.count('class="interval"') == 3 and 'class="middle"' in drawn
    unclear = Gain("a", 9, 0.5, 0.4, -0.1, -0.3, 0.1)
    drawn = str(environment().get_template("macros.jinja").module.forest(unclear, axis_over([-0.3, 0.1])))
    assert 'class="middle worse open"' in drawn, "distinguished without colour: hollow, and left of zero"


def test_the_curve_of_pass_at_k_takes_every_k_that_was_measured_and_else_the_two_that_are_known() -> None:
    assert curves(figures())["sft"] == {1: 0.331, 4: pytest.approx(0.431)}
    every = {**fixture.side(0.5), "pass_at": {"1": 0.5, "2": 0.6, "8": 0.7, "16": None}}
    assert curves(figures(trained=every))["trained"] == {1: 0.5, 2: 0.6, 8: 0.7}
    assert "pass@k: SFT" in str(pass_curve(figures()))
    assert pass_curve(None) is None


def test_lengths_cut_answers_and_parts_of_the_reward_are_listed_as_other_figures() -> None:
    sides = {"sft": {"truncated_share": 0.1, "parts": {"overlong": -0.1}, "metrics": {"parsed": 0.5}},
             "trained": {"truncated_share": 0.0, "parts": {"overlong": 0.0}, "metrics": {"parsed": 0.9, "new": 1.0},
                         "calibration": {"length": {"right_mean": 12.0}}}}  # fmt: skip
    rows = {row.name: row for row in other_figures(sides)}
    assert rows["cut at the length limit"].share
    assert rows["overlong"].sides == {"SFT": -0.1, "Trained": 0.0}
    assert rows["new"].sides == {"SFT": None, "Trained": 1.0}
    assert rows["length of right answers"].sides["Trained"] == 12.0
    assert other_figures(None) == []
