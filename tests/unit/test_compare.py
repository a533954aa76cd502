"""Runs side by side: what differs, how they compare, what is missing, what they cost; and the page of all that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_fixture as fixture
from factories import Judge, parity, settings, workspace
from markupsafe import Markup
from test_report_structure import Tree

from components.compare import Entry, StageTime, curves, lettered, render, to_dict
from components.compare.evaluation import over_sft, pairs, score_of
from components.config.evaluation import TEST
from components.errors import InputError
from components.evaluation import answering
from components.evaluation.cache import Cache
from components.files import read_json, sha256_tree, write_json
from components.layout import EVALUATIONS_VARIABLE, Layout
from components.report import load_run
from components.report.gains import unpaired
from components.stages import evaluate
from components.stages import train as train_stage
from components.training import assembly

SAME, OTHER = "5" * 64, "6" * 64


def entry(layout: Layout, name: str, *overrides: str, **changes: Any) -> Entry:
    return Entry(name, "done", load_run(fixture.settings("train.steps=60", *overrides), layout), **changes)


def evaluated(layout: Layout, prompts: str = SAME, **sides: Any) -> Layout:
    """The evaluation says which prompts were answered, and what ``sides`` say."""
    write_json(layout.evaluation, {**read_json(layout.evaluation), "prompts_sha256": prompts, **sides})
    return layout


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of words alone: plots take most of the time."""
    monkeypatch.setattr(curves, "_inline", lambda *_: Markup("<svg></svg>"))


@pytest.fixture
def three(tmp_path: Path) -> list[Entry]:
    """A run that passed, one that the monitor stopped, one that was refused before training."""
    healthy = entry(evaluated(fixture.healthy(tmp_path / "a")), "demo-a", commit="c" * 40)
    stopped = entry(fixture.stopped(tmp_path / "b"), "demo-b", "learner.lr=0.5", "triage.override=to see")
    return lettered([healthy, stopped, entry(fixture.refused(tmp_path / "c"), "demo-c", "seed=3")])


def page(entries: list[Entry]) -> str:
    return render(entries).replace("\u00a0", " ")


def test_only_settings_that_differ_are_listed_by_dotted_path_with_defaults_resolved(three: list[Entry]) -> None:
    found = to_dict(three)["settings"]
    rate = fixture.settings().learner.lr
    assert found == {
        "learner.lr": {"A": rate, "B": 0.5, "C": rate},
        "seed": {"A": 0, "B": 0, "C": 3},
        "triage.override": {"A": "", "B": "to see", "C": ""},
    }


@pytest.mark.usefixtures("without_plots")
def test_runs_without_evaluation_or_training_are_shown_with_what_they_have_and_why_the_rest_is_missing(
    three: list[Entry],
) -> None:
    text = page(three)
    assert "B and A cannot be compared: no evaluation of B." in text
    assert "has no evaluation, sample completions: the rule advantage_collapse stopped training after 23 steps" in text
    assert "triage refused the SFT checkpoint" in text
    assert "23 steps of 60 on record" in text and "0 steps of 60 on record" in text
    assert "Not recorded by C." in text
    assert text.count("not evaluated") == 2


@pytest.mark.usefixtures("without_plots")
def test_an_unfinished_training_is_shown_with_its_steps_so_far(tmp_path: Path) -> None:
    done = entry(fixture.healthy(tmp_path / "a"), "demo-a")
    begun = entry(fixture.start(tmp_path / "b"), "demo-b", stages={"train": StageTime("running", None)})
    steps = load_run(fixture.settings(), fixture.healthy(tmp_path / "c")).records or []
    going = replace(begun, run=replace(begun.run, records=steps[:7]))
    text = page(lettered([done, going]))
    assert "7 steps of 60 on record" in text
    assert "training record" not in text, "its steps are there"
    assert "has no triage: the stage triage has not finished" in text
    assert '<td data-label="B">running</td>' in text


def test_completions_are_counted_with_those_that_were_thrown_away(three: list[Entry]) -> None:
    counts = three[0].completions
    groups = [record.signals["groups_sampled"] for record in three[0].run.records or ()]
    assert counts[0] == 8 * groups[0]
    assert counts[59] == 8 * sum(groups)
    assert to_dict(three)["curves"]["dev_pass_at_1"]["A"]["completions"] == [counts[step] for step in (0, 20, 40)]
    costs = to_dict(three)["costs"]
    lengths = [record.signals["length_mean"] for record in three[0].run.records or ()]
    tokens = sum(8 * drawn * length for drawn, length in zip(groups, lengths, strict=True))
    assert (costs["A"]["completions"], costs["A"]["tokens"]) == (counts[59], round(tokens))
    assert (costs["C"]["completions"], costs["C"]["tokens"]) == (None, None)


@pytest.mark.usefixtures("without_plots")
def test_steps_that_do_not_say_how_much_was_sampled_have_no_place_on_the_axis_of_completions(tmp_path: Path) -> None:
    """Such as those of another trainer's log."""
    found = lettered([entry(fixture.healthy(tmp_path / name), name) for name in "ab"])
    for one in found:
        for record in one.run.records or ():
            del record.signals["groups_sampled"]
    assert "No run recorded how many completions it sampled." in page(found)


@pytest.mark.usefixtures("without_plots")
def test_a_stage_from_the_cache_cost_nothing_here(tmp_path: Path) -> None:
    stages = {"data": StageTime("cached", 0.4), "train": StageTime("done", 125.0)}
    one = entry(fixture.healthy(tmp_path), "demo-a", stages=stages, hours=0.05)
    found = lettered([one, replace(one, name="demo-b", stages={})])
    costs = to_dict(found)["costs"]
    assert costs["A"]["seconds"] == 125.0
    assert costs["B"]["seconds"] is None
    text = page(found)
    assert '<td data-label="A">cached</td>' in text
    assert "2:05" in text and "3:00" in text


# Evaluation


@pytest.mark.usefixtures("without_plots")
def test_without_kept_answers_the_interval_is_the_wider_unpaired_one_and_that_is_said(tmp_path: Path) -> None:
    one = entry(evaluated(fixture.healthy(tmp_path / "a")), "demo-a")
    better = evaluated(fixture.healthy(tmp_path / "b"), trained=fixture.side(0.95))
    found = lettered([one, entry(better, "demo-b")])
    (pair,) = pairs(found)
    assert pair.gain is not None
    assert (pair.gain.low, pair.gain.high) == unpaired(0.884, 0.95, 512)
    assert "B is better than A on 512 test prompts: 95.0 % against 88.4 %, +6.6 points" in page(found)
    assert "not paired" in pair.sentence


@pytest.mark.usefixtures("without_plots")
def test_runs_on_other_prompts_are_not_subtracted_from_each_other(tmp_path: Path) -> None:
    suite = {"prompts": 50, "k": 4, "sft": fixture.side(0.1), "trained": fixture.side(0.2), "prompts_sha256": SAME}
    layouts = [
        evaluated(fixture.healthy(tmp_path / name), prompts, suites={"more": suite})
        for name, prompts in (("a", SAME), ("b", OTHER))
    ]
    found = lettered([entry(layout, layout.root.name) for layout in layouts])
    (pair,) = pairs(found)
    assert pair.apart == [TEST]
    assert pair.forest is not None and list(pair.forest.groups) == ["Suite more"]
    assert pair.sentence == "B and A were not evaluated on the same test prompts."
    assert "Left out, because the prompts are not known to be the same: test." in page(found)


def test_an_evaluation_that_does_not_name_its_prompts_is_not_taken_for_one_on_the_same(tmp_path: Path) -> None:
    found = lettered([entry(fixture.healthy(tmp_path / name), name) for name in "ab"])
    (pair,) = pairs(found)
    assert pair.forest is None and pair.apart == [TEST]


def test_every_run_has_its_gain_over_its_own_sft_checkpoint(three: list[Entry]) -> None:
    forest = over_sft(three)
    assert forest is not None
    (row,) = forest.groups["All test prompts"]
    assert (row.name, row.mean) == ("A · demo-a", 0.553)
    score = score_of(three[0], TEST)
    assert score is not None and score.low < score.share == 0.884 < score.high


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Layout]:
    """Trains and evaluates a micro policy, keeping its answers."""
    monkeypatch.setenv(EVALUATIONS_VARIABLE, str(tmp_path / "kept"))
    for module in (answering, assembly):
        monkeypatch.setattr(module, "Scorer", lambda *_: Judge(parity))

    def run(name: str, **sections: Any) -> Layout:
        layout = workspace(tmp_path / name)
        train_stage.run(settings(**sections), layout)
        evaluate.run(settings(**sections), layout)
        for stand_in in (layout.validation, layout.audit, layout.admission, layout.triage):
            stand_in.unlink(missing_ok=True)  # of the fixture: too short for a page
        return layout

    return run


def test_two_trained_runs_are_paired_prompt_by_prompt_from_their_kept_answers(
    trained: Callable[..., Layout], tmp_path: Path
) -> None:
    sections = [{}, {"learner": {"lr": 0.05}}]
    layouts = [trained(f"r{n}", **one) for n, one in enumerate(sections)]
    found = lettered(
        [
            Entry(layout.root.name, "done", load_run(settings(**one), layout), kept=[tmp_path / "kept"])
            for layout, one in zip(layouts, sections, strict=True)
        ]
    )
    (pair,) = pairs(found)
    assert pair.gain is not None and pair.gain.paired and pair.paired
    digest = read_json(layouts[0].evaluation)["prompts_sha256"]
    kept = [next(Cache(tmp_path / "kept").results(sha256_tree(one.train_checkpoint), digest)) for one in layouts]
    differences = [new.pass_at_1 - old.pass_at_1 for old, new in zip(*kept, strict=True) if None not in (old, new)]
    assert pair.gain.mean == pytest.approx(sum(differences) / len(differences))
    assert json.loads(json.dumps(to_dict(found)))["evaluation"]["pairs"][0]["rows"][0]["paired"] is True
    assert page(found) == page(found)

    for path in (tmp_path / "kept").glob("*.json"):
        path.write_text(
            path.read_text(encoding="utf-8").replace('"accuracies": [', '"accuracies": [ ', 1).replace("1", "0")
        )
    (damaged,) = pairs(found)
    assert damaged.gain is not None and not damaged.gain.paired, "what was changed is not believed"


# The page


def test_the_page_loads_nothing_runs_nothing_and_is_well_formed(three: list[Entry]) -> None:
    text = render(three)
    tree = Tree(text)
    assert tree.wrong == [] and tree.open == []
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|img|link|iframe|object|embed|image)\b|\bon\w+=|@import|url\((?!#)|https?:", text)
    ids = [value for _, attributes, _ in tree.tags for key, value in attributes.items() if key == "id"]
    assert len(ids) == len(set(ids))
    wide = sum(attributes.get("class") == "wide" for _, attributes, _ in tree.tags)
    assert wide == sum(tag == "table" for tag, _, _ in tree.tags)
    assert "demo-a" in text and "Entropy over completions: A" in text


def test_names_and_reasons_are_text(tmp_path: Path) -> None:
    one = entry(fixture.stopped(tmp_path), "<i>x", "triage.override=<script>y")
    assert "<i>x" not in (text := page(lettered([one, replace(one, name="b")])))
    assert "<script" not in text


@pytest.mark.parametrize("count", [0, 1, 9])
def test_one_run_or_more_than_there_are_colours_are_refused(three: list[Entry], count: int) -> None:
    with pytest.raises(InputError, match=f"^{count} runs cannot be put side by side"):
        lettered([three[0]] * count)


def test_the_axis_of_steps_ends_with_the_last_step_of_a_log_that_has_every_tenth(tmp_path: Path) -> None:
    sparse = entry(fixture.healthy(tmp_path), "demo-a")
    sparse.run.records[:] = [replace(record, step=10 * record.step) for record in sparse.run.records or ()]
    assert curves._last_step([sparse]) == sparse.run.records[-1].step == 10 * (sparse.steps - 1)


def test_samples_that_got_worse_are_kept_wherever_they_stand() -> None:
    sides = {"right": {"accuracy": 1.0}, "wrong": {"accuracy": 0.0}}
    rows = [{"id": n, "sft": sides["right"], "trained": sides["wrong" if n in (7, 9) else "right"]} for n in range(10)]
    assert [row["id"] for row in evaluate.kept(rows, 4)] == [0, 1, 7, 9]
