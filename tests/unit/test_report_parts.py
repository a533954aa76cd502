"""The parts of the page: words, samples, settings, tables, plots."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import report_fixture as fixture
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from components.config import Settings
from components.files import read_json, write_json
from components.health.signals import SIGNALS
from components.layout import Layout
from components.pages import render_page, visible
from components.report.attention import attention
from components.report.changes import differences
from components.report.drawing import LABEL_GAP, Label, spread
from components.report.load import load_run
from components.report.panels import PANELS
from components.report.tables import last_values, triage_limits
from components.report.verdict import gain_sentence
from components.types import Verdict
from components.words import number, percent, points


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0.0, "0"), (1032448, "1,032,448"), (0.4421, "0.442"), (-2.5, "−2.5"), (2.1e-7, "2.1·10⁻⁷")],
)
def test_numbers_have_three_digits_and_what_was_not_measured_is_a_dash(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_shares_are_per_cent_and_differences_are_signed_points() -> None:
    assert percent(0.3312) == "33.1\u00a0%"
    assert points(0.553) == "+55.3"
    assert points(-0.0551) == "−5.5"
    assert points(-0.0001) == "0.0"


def test_invisible_and_reordering_characters_are_spelled_out() -> None:
    assert visible("a\u202eb\u200bc\x00\nd\te") == "a\\u202eb\\u200bc\\u0000\nd\te"


def test_long_text_says_how_much_of_it_is_not_shown() -> None:
    assert visible("x" * 1200, limit=200) == "x" * 200 + " … [1,000 more characters]"


@pytest.mark.parametrize(
    ("low", "high", "verb"), [(0.01, 0.2, "rose"), (-0.2, -0.01, "fell"), (-0.01, 0.2, "shows no clear change:")]
)
def test_a_gain_counts_as_a_change_only_where_its_interval_excludes_zero(
    tmp_path: Path, low: float, high: float, verb: str
) -> None:
    run = load_run(fixture.settings(), fixture.healthy(tmp_path))
    assert run.evaluation is not None
    run.evaluation["gain"] |= {"low": low, "high": high}
    assert f"held-out prompts {verb} from" in gain_sentence(run)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.01, 0.2, "is better than"), (-0.2, -0.01, "is worse"), (-0.01, 0.2, "is neither")],
)
def test_the_headline_says_how_it_compares_with_the_champion(
    tmp_path: Path, low: float, high: float, words: str
) -> None:
    run = load_run(fixture.settings(), fixture.healthy(tmp_path))
    assert run.evaluation is not None
    assert "champion" not in gain_sentence(run)
    champion = {"champion": fixture.side(0.8), "gain_over_champion": {"mean": 0.1, "low": low, "high": high}}
    run.evaluation.update(champion)
    assert f"It {words}" in gain_sentence(run)
    assert "champion's 80.0" in gain_sentence(run)


def attentive(layout: Layout, change: Callable[[dict[str, Any]], object]) -> list[str]:
    """What is pointed out where the evaluation was changed."""
    evaluation = read_json(layout.evaluation)
    change(evaluation)
    write_json(layout.evaluation, evaluation)
    return [fact.replace("\u00a0", " ") for fact in attention(load_run(fixture.settings(), layout))]


def test_attention_names_families_that_got_worse_and_verdicts_and_quarantine(tmp_path: Path) -> None:
    facts = " ".join(attention(load_run(fixture.settings(), fixture.healthy(tmp_path)))).replace("\u00a0", " ")
    assert "pass@1 fell in family comparison: 68.7 % to 63.2 % (85 prompts; 95 % interval" in facts
    assert "so it may be chance" in facts
    assert "1 health verdict: entropy_halved (warn, step 42)." in facts
    assert "3 of 16,000 data rows are in quarantine." in facts
    assert "changed how it was trained" not in facts
    rescued = " ".join(attention(load_run(fixture.settings(), fixture.rescued(tmp_path / "rescued"))))
    assert "2 responses changed how it was trained: entropy_collapse (intervene, step 20);" in rescued


def test_attention_names_a_suite_that_got_worse_while_the_rest_got_better(tmp_path: Path) -> None:
    shares = {"prompts": 200, "sft": {"pass_at_1": 0.7}, "trained": {"pass_at_1": 0.3}}
    suite = {**shares, "gain": {"mean": -0.4, "low": -0.5, "high": -0.3, "n": 200}}
    said = attentive(fixture.healthy(tmp_path), lambda evaluation: evaluation.update(suites={"gsm8k": suite}))
    why = "200 prompts; 95 % interval −50.0 to −30.0"
    assert f"pass@1, sampled, fell on suite gsm8k: 70.0 % to 30.0 % ({why})." in said


def test_attention_calls_a_fall_of_one_prompt_chance_and_counts_it_as_one(tmp_path: Path) -> None:
    def change(evaluation: dict[str, Any]) -> None:
        for side, share in (("sft", 0.25), ("trained", 0.0)):
            evaluation[side]["families"]["lone"] = {"prompts": 1, "small": True, "pass_at_1": share}
        evaluation["trained"]["families"]["lone"]["gain"] = {"mean": -0.25, "low": -0.25, "high": -0.25, "n": 1}

    said = attentive(fixture.healthy(tmp_path), change)
    why = "1 prompt; too few prompts for an interval, so it may be chance"
    assert f"pass@1 fell in family lone: 25.0 % to 0.0 % ({why})." in said


@pytest.mark.parametrize(
    ("unscorable", "who"),
    [
        (("trained",), "the trained policy"),
        (("sft",), "the SFT checkpoint"),
        (("sft", "trained"), "the SFT checkpoint and of the trained policy"),
    ],
)
def test_a_policy_of_which_nothing_could_be_scored_still_has_a_page_that_says_so(
    tmp_path: Path, unscorable: tuple[str, ...], who: str
) -> None:
    unknown = dict.fromkeys(("pass_at_1", "pass_at_k", "greedy", "truncated_share"))

    def change(evaluation: dict[str, Any]) -> None:
        evaluation |= {side: evaluation[side] | unknown for side in unscorable} | {"gain": None, "greedy_gain": None}

    said = attentive(fixture.healthy(tmp_path), change)
    assert f"pass@4 of {who} is not known: no prompt has 4 completions that could be scored." in said
    assert "less diverse" not in " ".join(said)


def test_default_settings_differ_in_nothing() -> None:
    assert differences(Settings()) == []


def test_changed_settings_are_listed_with_both_values_and_rules_are_left_to_their_own_table() -> None:
    settings = fixture.settings("learner.lr=0.0005", "schedule={kind: ads}")
    found = {change.key: (change.value, change.other) for change in differences(settings)}
    assert found["learner.lr"] == ("0.0005", "0.0001")
    assert found["schedule.kind"] == ("ads", "uniform")
    assert found["schedule.band"] == ("0.17", None)
    assert not [key for key in found if key.startswith("health.rules")]


def test_of_a_section_that_a_configuration_names_only_what_is_not_its_own_default_is_listed() -> None:
    settings = fixture.settings("health.canaries={fairness: {generated: names, max_drop: 0.2}}")
    found = [change.key for change in differences(settings) if "fairness" in change.key]
    assert found == ["health.canaries.fairness.generated", "health.canaries.fairness.max_drop"]


def test_each_triage_figure_is_held_against_the_limit_that_triage_recorded() -> None:
    teaching, headroom, _, _ = triage_limits(fixture.triage(accept=False))
    assert not teaching.met and headroom.met
    assert triage_limits(None) == []


@pytest.mark.parametrize(("entropy", "met"), [(0.44, True), (0.1, False)])
def test_entropy_makes_up_for_samples_that_find_little(entropy: float, met: bool) -> None:
    _, _, *joint = triage_limits(fixture.triage(accept=False) | {"entropy": entropy})
    assert [limit.met for limit in joint] == [met, met]


def test_a_verdict_shows_the_last_values_that_it_saw_and_says_when_one_is_missing() -> None:
    assert last_values(Verdict("r", "warn", 3, "why", {"entropy": [1.0, 0.5, None]})) == ["entropy 1, 0.5, –"]
    many = Verdict("r", "warn", 9, "why", {"loss": [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]})
    assert last_values(many) == ["loss … 5, 4, 3, 2, 1"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_labels_never_cover_each_other_and_keep_their_order(heights: list[float]) -> None:
    labels = [Label(height, str(index), "ink") for index, height in enumerate(heights)]
    placed = spread(labels)
    assert [label.text for label in placed] == [label.text for label in sorted(labels, key=lambda item: item.height)]
    assert all(b.height - a.height >= LABEL_GAP - 1e-9 for a, b in pairwise(placed))
    assert placed[-1].height <= 1 + 1e-9


def test_panels_plot_signals_that_a_training_step_records() -> None:
    assert {item.signal for panel in PANELS.values() for item in panel.series} <= set(SIGNALS)


def test_withheld_prompts_and_findings_about_the_data_are_pointed_out(tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    finding = {"name": "guessable answers", "level": "warn", "what": "80.0% are yes or no", "where": "x", "how": "y"}
    validation = read_json(layout.validation)
    write_json(layout.validation, {**validation, "table": [finding, {**finding, "level": "pass", "what": "quiet"}]})
    flagged = [{"id": "p1"}]
    write_json(layout.admission, {"verdict": "withheld", "withheld": ["p1"], "flagged": flagged, "planned": {}})
    said = attention(load_run(fixture.settings(), layout))
    assert "Data, guessable answers: 80.0% are yes or no." in said
    assert "1 training prompt withheld for review, see out/admission.jsonl." in said
    assert not any("quiet" in sentence for sentence in said)
    write_json(layout.admission, {"verdict": "reported", "withheld": [], "flagged": flagged, "planned": {}})
    assert any("p1 first" in sentence for sentence in attention(load_run(fixture.settings(), layout)))


def test_every_text_that_a_page_puts_out_is_spelled_out_and_html_of_our_own_stays(tmp_path):
    template = tmp_path / "page.jinja"
    template.write_text(
        '<a title="{{ text }}">{{ text }}</a>{{ ours }}{{ 3 }}{% macro m() %}<i>{{ text }}</i>{% endmacro %}{{ m() }}'
    )
    shown = "\\u202e&lt;b&gt;&#34;\\u001b"
    page = render_page(template, text='\u202e<b>"\x1b', ours=Markup("<br>"))
    assert page == f'<a title="{shown}">{shown}</a><br>3<i>{shown}</i>'
