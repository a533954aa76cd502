"""Plots, verdicts and the ledger on the page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import report_fixture as fixture
from report_pages import healthy, page, stopped

from components.config.judgement import RuleSettings
from components.files import write_json, write_jsonl
from components.health.limits import limits
from components.health.responses import Ledger
from components.report import load_run
from components.report.overlay import COLUMNS, MANY, SHAPES, apart, lines, overlay_of
from components.report.page import environment
from components.report.panels import PANELS, expand
from components.report.plots import MOST_POINTS, PARTS, draw_all, thinned
from components.stages.report import run
from components.types import Verdict

__all__ = ["healthy", "stopped"]


def test_equal_runs_give_equal_bytes_wherever_they_are(tmp_path: Path) -> None:
    pages = []
    for name in ("here", "elsewhere"):
        layout = fixture.healthy(tmp_path / name)
        run(fixture.settings(), layout)
        pages.append(layout.report.read_bytes())
    assert pages[0] == pages[1]
    assert str(tmp_path).encode() not in pages[0]


def test_every_verdict_is_marked_in_every_plot_with_its_number(stopped: str) -> None:
    for plot in re.findall(r'<figure id="plot-.*?</figure>', stopped, flags=re.DOTALL):
        marks = re.findall(r"fill: var\(--(amber|red)\)[^>]*>(\d+)</text>", plot)
        assert marks == [("amber", "1"), ("red", "2")]


def test_plots_carry_no_colour_of_their_own_so_that_the_theme_decides(healthy: str) -> None:
    plots = re.findall(r"<figure.*?</figure>", healthy, flags=re.DOTALL)
    assert len(plots) == len(PANELS) + 1, "and the pass@k curve"
    assert not [plot for plot in plots if re.search(r"(?:fill|stroke): #", plot)]


def test_signals_that_were_not_recorded_leave_no_empty_plot(tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    records = load_run(fixture.settings(), layout).records or []
    bare = [replace(row, signals={k: v for k, v in row.signals.items() if not k.startswith("kl_")}) for row in records]
    write_jsonl(layout.records, [row.to_dict() for row in bare])
    text = page(layout)
    assert 'id="plot-kl"' not in text
    assert "Not recorded in this run: KL." in text


def test_a_run_of_a_single_step_can_be_drawn(tmp_path: Path) -> None:
    layout = fixture.start(tmp_path)
    write_json(layout.triage, fixture.triage(accept=True))
    fixture.train(layout, steps=1, verdicts=[])
    assert 'id="plot-entropy"' in page(layout)


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without plots, which take most of their time, for tests of what stands around these."""
    monkeypatch.setattr("components.report.page.draw_all", lambda *_: [])


@pytest.fixture(scope="module")
def rescued(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page(fixture.rescued(tmp_path_factory.mktemp("rescued")))


def test_a_rescued_run_says_in_plain_words_what_happened_and_shows_the_ledger(rescued: str) -> None:
    assert "Recovered: the run was acted on 2 times (entropy collapse at steps 20 and 31); 1 of 2 recovered" in rescued
    table = rescued[rescued.index('id="ledger"') :].partition("</table>")[0]
    for expected in (
        "back to step 16",
        "learner.lr 0.0002 → 0.0001",
        "recovered within 10 steps",
        "requested: intervene",
    ):
        assert expected in table
    assert '<td class="figure">16</td>' in table


def test_responses_and_thrown_away_steps_are_drawn_in_every_plot(rescued: str, healthy: str) -> None:
    plots = re.findall(r'<figure id="plot-.*?</figure>', rescued, flags=re.DOTALL)
    assert all("2 responses marked" in plot for plot in plots)
    assert all("opacity: 0.18" in plot for plot in plots)
    assert "opacity: 0.18" not in healthy


def test_a_run_from_before_there_was_a_ledger_is_drawn_and_says_what_is_missing(tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    layout.ledger.unlink()
    verdicts = [{key: value for key, value in fixture.verdict("x", "warn", 3).items() if key != "clean"}]
    write_jsonl(layout.train / "verdicts.jsonl", verdicts)
    text = page(layout)
    missing = "No ledger of responses (<code>out/train/ledger.jsonl</code>): the stage train left other files but"
    assert missing in text
    assert 'id="plot-entropy"' in text


@pytest.mark.usefixtures("without_plots")
def test_the_stage_writes_the_verdict_as_text_too_whatever_is_there(tmp_path: Path) -> None:
    for name, start in (("rescued", "Recovered: "), ("stopped", "Stopped at step 22: "), ("refused", "Not trained: ")):
        layout = getattr(fixture, name)(tmp_path / name)
        run(fixture.settings("train.steps=60"), layout)
        assert layout.verdict.read_text(encoding="utf-8").startswith(f"# Health of run demo\n\n**{start}")


@pytest.mark.usefixtures("without_plots")
def test_rules_that_never_spoke_are_known_as_silent(tmp_path: Path) -> None:
    layout, rules = fixture.healthy(tmp_path), fixture.settings().health.rules
    write_jsonl(layout.train / "verdicts.jsonl", [fixture.verdict("nonfinite_weights", "stop", 3)])
    text = page(layout)
    assert f"{len(rules)} rules watched, {len(rules) - 1} silent throughout" in text
    assert (text.count(">1 time</td>"), text.count(">silent</td>")) == (1, len(rules) - 1)


@pytest.mark.usefixtures("without_plots")
def test_what_a_ledger_says_is_shown_as_text_and_never_as_markup(tmp_path: Path) -> None:
    layout = fixture.rescued(tmp_path)
    row = fixture.ledger()[2] | {"quarantined": ["<b>x</b>\u202e"], "reason": "<script>"}
    write_jsonl(layout.ledger, [row])
    text = page(layout)
    assert "<script" not in text
    assert "&lt;b&gt;x&lt;/b&gt;\\u202e" in text


def drawn_lines(panel: str) -> list[tuple[str, str, float, str]]:
    rules = {
        "low": RuleSettings(when="entropy < 0.5", why="low"),
        "dead": RuleSettings(when="zero_variance_share > 0.7", why="dead"),
        "lost": RuleSettings(when="zero_variance_share > 0.9 and all_wrong_share > 0", level="stop", why="lost"),
    }
    return [
        (line.signal, line.side, line.value, line.level + ("" if line.alone else "*"))
        for line in lines(limits(rules), PANELS[panel])
    ]


def test_a_panel_shows_the_limits_of_the_signals_in_it_and_of_what_its_areas_add_up_to() -> None:
    assert ("entropy", "<", 0.5, "warn") in drawn_lines("entropy")
    assert {("zero_variance_share", ">", 0.7, "warn"), ("zero_variance_share", ">", 0.9, "stop*")} <= set(
        drawn_lines("zero_variance")
    )
    assert drawn_lines("groups") == []


def test_a_limit_far_from_the_values_is_named_at_the_edge_and_does_not_flatten_the_curve(tmp_path: Path) -> None:
    run = load_run(fixture.settings(), fixture.healthy(tmp_path))
    overlay = overlay_of(run.records or [], [], Ledger(), run.settings)
    plots = {plot.name: plot for plot in draw_all(run.records or [], overlay, run.settings)}
    assert "warn &gt; 30.0\u00a0% ↑" in plots["truncated"].svg
    assert "truncated_share > 30.0\u00a0%: truncated (warn)" in plots["truncated"].limits
    assert "warn &lt; 0.5<" in plots["entropy"].svg


def test_a_panel_of_a_prefix_draws_what_was_recorded_under_it() -> None:
    recorded = ["accuracy", "canary_drop", "canary_fairness", "canary_medicine"]
    labels = [item.label for item in expand(PANELS["canary"], recorded).series]
    assert labels == ["largest fall", "fairness", "medicine"]
    assert expand(PANELS["accuracy"], recorded) == PANELS["accuracy"]


@pytest.mark.parametrize("level", ["warn", "intervene", "rollback", "stop"])
def test_every_level_has_a_shape_of_its_own(level: str) -> None:
    macros = environment().get_template("macros.jinja").module
    others = [shape for other, shape in SHAPES.items() if other != level]
    assert SHAPES[level] not in others
    pictures = {str(macros.shape(name)).partition(' d="')[2] for name in SHAPES}
    assert len(pictures) == len(SHAPES)


def test_a_curve_of_usual_length_is_drawn_point_by_point() -> None:
    x, y = list(range(MOST_POINTS)), [float(step % 7) for step in range(MOST_POINTS)]
    assert thinned(x, y, extremes=True) == (x, y)


def test_a_long_curve_keeps_its_extremes_its_order_and_its_last_point() -> None:
    x, y = list(range(10**5)), [float(step % 97) for step in range(10**5)]
    y[40_321], y[77_777] = 500.0, -500.0
    steps, values = thinned(x, y, extremes=True)
    assert len(steps) <= 2 * PARTS + 1
    assert steps == sorted(set(steps)) and (steps[-1], values) == (x[-1], [y[step] for step in steps])
    assert {40_321, 77_777} <= set(steps)


def test_stacked_areas_are_thinned_at_the_same_steps() -> None:
    x = list(range(10**5))
    rising, falling = (thinned(x, [sign * step for step in x], extremes=False) for sign in (1.0, -1.0))
    assert rising[0] == falling[0]
    assert (rising[0][0], rising[0][-1]) == (0, x[-1])


def test_of_very_many_warnings_only_distinguishable_ones_are_drawn() -> None:
    many = [Verdict("quiet", "warn", step, "why") for step in range(0, 10**5, 50)]
    grave = Verdict("loud", "stop", 50_001, "why")
    drawn = list(apart([*many, grave], 10**5))
    assert len(drawn) <= COLUMNS + 1
    assert (drawn[0], drawn[-1]) == ((1, many[0]), (len(many) + 1, grave))
    assert list(apart(many[:MANY], 10**5)) == list(enumerate(many[:MANY], start=1)), "of few, every one"
