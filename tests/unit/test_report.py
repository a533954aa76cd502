"""The page as a whole, on fabricated runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import report_fixture as fixture
from report_pages import healthy, page, stopped

from components.errors import InputError
from components.files import write_json, write_jsonl, write_text
from components.layout import Layout
from components.report import load_run

__all__ = ["healthy", "stopped"]
APPROVE = "evenkeel approve"


@pytest.fixture(autouse=True, scope="module")
def without_plots() -> Iterator[None]:
    """They take most of the time, and have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("components.report.page.draw_all", lambda *_: [])
        yield


def test_a_passed_run_says_in_one_sentence_what_was_gained_and_how_to_approve(healthy: str) -> None:
    assert "Gate passed: a candidate awaits approval" in healthy
    assert (
        "pass@1 on 512 held-out prompts rose from 33.1 % to 88.4 % (+55.3 points, 95 % interval +52.1 to +58.2)."
    ) in healthy
    assert f"evenkeel approve {fixture.DIGEST[:12]} --by YOUR-NAME --reason" in healthy
    assert "Missing from this page" not in healthy


def test_the_page_holds_the_offline_difficulty_against_measured_success(healthy: str) -> None:
    assert "Success of the 128 training prompts that triage sampled." in healthy
    assert "Spearman with rank in the cluster −0.24 (95 % −0.4 to −0.07)" in healthy
    assert "Cluster 9 of k-means, 3 prompts, was smaller than the schedule's window" in healthy
    assert healthy.count('<th scope="row">0 to 1/5</th><td class="figure">20</td>') == 1


def test_a_stopped_run_names_the_rule_the_override_and_what_is_missing_and_cannot_be_approved(stopped: str) -> None:
    assert "Gate failed: nothing to approve" in stopped
    assert "The health rule advantage_collapse stopped training after 23 of 60 steps" in stopped
    assert "was overridden. Reason given: “to see &lt;b&gt;what&lt;/b&gt; happens”" in stopped
    assert "No evaluation (<code>out/evaluation.json</code>): the rule advantage_collapse stopped training" in stopped
    assert APPROVE not in stopped


def test_a_refused_run_says_why_and_which_parts_it_kept_from_running(tmp_path: Path) -> None:
    text = page(fixture.refused(tmp_path))
    assert "Refused before training: nothing to approve" in text
    assert "0.62 of the 16 groups of a step would carry a gradient" in text
    for path in ("out/train/records.jsonl", "out/train.json", "out/evaluation.json"):
        assert f"(<code>{path}</code>): triage refused the SFT checkpoint" in text
    assert f"{len(fixture.settings().health.rules)} rules configured, none has watched yet" in text
    assert APPROVE not in text


def test_a_run_of_which_nothing_exists_still_gives_a_page(tmp_path: Path) -> None:
    text = page(Layout(tmp_path))
    assert "Unfinished run: nothing to approve" in text
    assert "The stage data has not finished." in text
    assert "the stage data, which comes before gate, has not finished" in text


def test_checkpoints_that_differ_between_stages_are_never_approvable(tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    gate = load_run(fixture.settings(), layout).gate
    write_json(layout.gate, {**(gate or {}), "checkpoint_sha256": "0" * 64})
    text = page(layout)
    assert "Do not approve" in text and "become the champion?" not in text
    assert f"train {fixture.DIGEST[:12]}, evaluate {fixture.DIGEST[:12]}, gate 000000000000" in text
    assert APPROVE not in text


def test_a_gate_that_could_not_decide_asks_a_person_and_names_the_checks_that_are_open(tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    fixture.gate(layout, "inconclusive", [("health", "pass", "quiet"), ("gain", "inconclusive", "too few prompts")])
    text = page(layout)
    assert "Gate inconclusive: a person has to judge" in text
    assert "Inconclusive: gain. pass@1 on 512 held-out prompts rose" in text
    assert APPROVE in text


@pytest.mark.parametrize("name", ["evaluation", "records", "train_metrics", "triage"])
def test_a_passed_gate_without_its_evidence_is_not_approvable(tmp_path: Path, name: str) -> None:
    layout = fixture.healthy(tmp_path)
    getattr(layout, name).unlink()
    text = page(layout)
    assert "Gate passed, but evidence is missing" in text
    assert APPROVE not in text


def test_what_a_model_wrote_is_shown_as_text_and_never_as_markup(tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    hostile = "<script>alert(1)</script>\u202eabc\x1b[31m"
    row = fixture.sample(1) | {"family": "<i>$x_1$", "trained": {"text": hostile, "accuracy": None}}
    write_jsonl(layout.samples, [row])
    text = page(layout)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202eabc\\u001b[31m" in text
    assert "&lt;i&gt;$x_1$" in text
    assert "? unscorable" in text


def test_the_validation_page_is_linked_relative_to_the_report(healthy: str) -> None:
    assert '<a href="data/validation.html">' in healthy


def test_a_malformed_output_is_an_error_that_names_file_and_key(tmp_path: Path) -> None:
    layout = fixture.refused(tmp_path)
    write_json(layout.gate, {"result": "pass"})
    with pytest.raises(InputError, match="lacks checks, checkpoint_sha256") as caught:
        load_run(fixture.settings(), layout)
    assert caught.value.where == str(layout.gate)
    write_text(layout.gate, "{")
    with pytest.raises(InputError, match="not valid JSON"):
        load_run(fixture.settings(), layout)


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-1e999", "1" + "0" * 400])
@pytest.mark.parametrize(
    ("part", "old", "at"),
    [
        ("evaluation", '"pass_at_k": 0.984', "trained.pass_at_k"),
        ("records", '"entropy": 0.4', "0.signals.entropy"),
        ("canaries", '"score": 0.9', "sets.names.by.likelihood.sft.score"),
    ],
)
def test_a_figure_that_is_no_finite_number_is_an_error_that_names_file_and_place(
    tmp_path: Path, part: str, old: str, at: str, figure: str
) -> None:
    layout = fixture.healthy(tmp_path)
    write_json(layout.canaries, {"sets": {"names": {"by": {"likelihood": {"sft": {"score": 0.9}}}}}})
    path = getattr(layout, part)
    text = path.read_text()
    assert old in text
    key = old.split(":")[0]
    path.write_text(re.sub(rf"{re.escape(old)}[\d.e-]*", f"{key}: {figure}", text, count=1))
    with pytest.raises(InputError, match=rf"^{at} is not a finite number") as caught:
        load_run(fixture.settings(), layout)
    assert caught.value.where == str(path)


def test_a_kept_comparison_with_figures_that_are_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gain\.low is not a finite number"):
        load_run(fixture.settings(), fixture.healthy(tmp_path), comparison={"gain": {"low": float("nan")}})
