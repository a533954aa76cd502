"""The page of a candidate: the run's own parts, and what is known since."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import report_fixture as fixture

from components.config import dump
from components.evaluation.sentences import result_sentences
from components.files import read_json, write_json, write_text
from components.layout import Layout
from components.report import champion_of, load_evidence, load_run, render

GAIN = {"mean": -0.01, "low": -0.04, "high": 0.02, "confidence": 0.95, "detectable": 0.03}
COMPARED = {
    "candidate": fixture.DIGEST,
    "champion": "b" * 64,
    "prompts": 300,
    "samples": 4,
    "gain": GAIN,
    "greedy_gain": GAIN,
    "figures": {"candidate": fixture.side(0.79), "champion": fixture.side(0.8)},
    "words": ["It could have been <b>."],
}
"""What `components.evaluation.compare_with_champion` returns."""


@pytest.fixture(autouse=True)
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time, and are tested elsewhere."""
    monkeypatch.setattr("components.report.page.draw_all", lambda *_: [])


def evidence(root: Path) -> Layout:
    """What is stored with a candidate."""
    layout = fixture.healthy(root)
    write_text(layout.params, dump(fixture.settings("train.steps=60")))
    write_json(layout.lineage, {"commit": "c0ffee", "committed": True, "inputs": [], "run": "demo-1"})
    return layout


def test_the_page_of_a_candidate_is_made_of_its_stored_evidence_and_of_what_is_known_since(tmp_path: Path) -> None:
    gate = {
        "result": "inconclusive",
        "checks": [{"name": "lineage", "result": "inconclusive", "evidence": "a snapshot"}],
    }
    champion = champion_of("b" * 64, evidence(tmp_path / "champion"))
    made = [
        render(
            load_evidence(
                evidence(tmp_path / name), origin={"started_by": ["ann"]}, judgement=gate, comparison=COMPARED,
                champion=champion,
            )
        )
        for name in ("here", "elsewhere")
    ]  # fmt: skip
    assert made[0] == made[1]
    shown = made[0].replace("\u00a0", " ")
    for expected in (
        "Gate inconclusive: a person has to judge",
        "pass@1 80.0 % → 79.0 % on the same prompts",
        "It could have been &lt;b&gt;.",
        "No setting differs",
        '<code class="digest">ann</code>',
        "a commit of the project&#39;s history",
        "−4.0 to +2.0",
    ):
        assert expected in shown


def test_code_from_outside_is_part_of_where_the_candidate_comes_from(tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    digest = "d" * 64
    section = f"objective.ratio={{kind: python, target: 'mine.hinge:RATIO', sha256: {digest}}}"
    shown = render(load_run(fixture.settings(section), layout))
    assert "Code from outside, objective.ratio" in shown and digest in shown and "mine.hinge:RATIO" in shown


OLD, NEW = "a" * 64, "b" * 64
SUITE = {
    "prompts": 200, "samples": 0, "k": 0, "sft": {"greedy": 0.2}, "trained": {"greedy": 0.6}, "gain": None,
    "champion": {"greedy": 0.1}, "greedy_gain": {**GAIN, "mean": 0.4, "low": 0.35, "high": 0.45},
    "greedy_gain_over_champion": {**GAIN, "mean": 0.4997},
}  # fmt: skip


def against_old(root: Path) -> Layout:
    """The evidence of a run whose settings named the champion of then, on prompts, slices, suites and probe sets."""
    layout = evidence(root)
    named = f"evaluation.champion={{path: champion, sha256: '{OLD}'}}"
    probed = "health.canaries={champion: {generated: layout, by: [likelihood]}}"
    write_text(layout.params, dump(fixture.settings("train.steps=60", named, probed)))
    found, ahead = read_json(layout.evaluation), {**GAIN, "mean": 0.384, "low": 0.36, "high": 0.4}
    found["trained"]["families"]["addition"]["gain_over_champion"] = {**ahead, "mean": 0.2718}
    over = {"champion": fixture.side(0.5), "gain_over_champion": ahead, "greedy_gain_over_champion": ahead}
    found |= {**over, "suites": {"gsm": SUITE}}
    write_json(layout.evaluation, {**found, "words": result_sentences(found)})
    drop = {"mean": 0.0, "se": 0.005, "low": -0.01, "high": 0.01, "n": 100}
    scores = {side: {"score": score} for side, score in (("sft", 0.9), ("trained", 0.91), ("champion", 0.4321))}
    way = {**scores, "drop": drop, "drops": [drop], "verdict": "pass"}
    sets = {"champion": {"max_drop": 0.05, "by": {"likelihood": way}}}
    write_json(layout.canaries, {"said": "", "sets": sets})
    return layout


OF_OLD = ("38.4", "49.97", "27.2", "+50.0", "43.2")
"""What only the champion of then has figures of."""


@pytest.mark.parametrize("comparison", [COMPARED, None])
def test_what_was_measured_of_another_champion_is_left_out_and_said_to_be(
    tmp_path: Path, comparison: dict[str, object] | None
) -> None:
    gate = {"result": "fail", "checks": []}
    run = load_evidence(against_old(tmp_path), judgement=gate, comparison=comparison, champion=champion_of(NEW, None))
    shown = render(run).replace("\u00a0", " ")
    assert [figure for figure in OF_OLD if figure in shown] == []
    assert f"The run measured another champion, <code>{OLD[:12]}</code>" in shown
    assert f"the run measured another one, {OLD[:12]}." in shown
    for kept in ("+55.3 points over the SFT checkpoint", "gsm: greedy accuracy 60.0 %", "Suite gsm", "91.0 %"):
        assert kept in shown
    assert ("−4.0 to +2.0" in shown) is (comparison is not None)
    assert ("nothing compares them" in shown) is (comparison is None)


def test_what_was_measured_of_an_unknown_champion_is_left_out_too(tmp_path: Path) -> None:
    layout = against_old(tmp_path)
    write_text(layout.params, dump(fixture.settings("train.steps=60")))
    shown = render(load_evidence(layout, judgement={"result": "pass", "checks": []}))
    assert "38.4" not in shown and "The run measured another champion, <code>unknown<" in shown


def test_what_was_measured_of_the_champion_of_the_page_is_shown(tmp_path: Path) -> None:
    layout, gate = against_old(tmp_path), {"result": "pass", "checks": []}
    asked = load_evidence(layout, judgement=gate, champion=champion_of(OLD, None))
    for run in (asked, load_evidence(layout)):
        shown = render(run)
        assert all(figure in shown for figure in ("+38.4", "+50.0", "+27.2", "43.2")), "also on the page of a run alone"
        assert "measured another" not in shown


def test_a_champion_from_before_evidence_was_kept_is_known_by_its_digest_alone(tmp_path: Path) -> None:
    assert champion_of("b" * 64, None) == {"digest": "b" * 64}
    shown = render(load_evidence(evidence(tmp_path), champion=champion_of("b" * 64, None)))
    assert "The settings of the champion's run are not on record" in shown


def test_a_part_from_outside_changes_the_page_in_the_same_way_every_time(tmp_path: Path) -> None:
    pages = []
    for name in ("here", "elsewhere"):
        layout = fixture.healthy(tmp_path / name)
        figures = {"candidate": fixture.side(0.88), "champion": fixture.side(0.8)}
        over = {"figures": figures, "prompts": 300, "gain": {"mean": 0.08, "low": 0.05, "high": 0.11}}
        write_json(layout.lineage, {"commit": "c0ffee", "committed": False, "run": "demo-1", "inputs": []})
        run = load_run(fixture.settings(), layout, comparison=over)
        pages.append(render(replace(run, origin={"started_by": ["ann", "<b>ann</b>"]})))
    assert pages[0] == pages[1]
    assert str(tmp_path) not in pages[0]
    shown = pages[0].replace("\u00a0", " ")
    assert "Over the champion" in shown and "+5.0 to +11.0" in shown
    assert (
        "c0ffee" in shown
        and "a snapshot of a working tree" in shown
        and "a claim" in shown
        and "<b>ann</b>" not in shown
    )


def test_what_changed_is_shown_relative_to_the_champions_run_where_it_is_known(tmp_path: Path) -> None:
    layout, mine = fixture.healthy(tmp_path), fixture.settings("learner.lr=0.0005")
    champion = {"digest": "a" * 64, "params": fixture.settings().model_dump(mode="json")}
    text = render(load_run(mine, layout, champion=champion))
    section = text[text.index('id="changed"') : text.index('id="comparison"')]
    row = r"<code>learner.lr</code></th><td>0.0005</td><td class=\"small\">0.0002</td>"
    assert re.search(row, section)
    assert section.index("learner.lr") < section.index("Where both began")
    assert "aaaaaaaaaaaa" in section
