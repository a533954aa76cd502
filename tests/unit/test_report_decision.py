"""The box at the top and the gate's table: what is asked, what is known, what must be looked at, how to decide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_fixture as fixture

from components.config.canaries import CanarySettings, RequiredCanary
from components.config.judgement import HealthSettings
from components.config.registry import RegistrySettings
from components.gate.checks import CHECKS
from components.report import Run, load_run, render
from components.report.attention import attention
from components.report.canaries import canary_rows
from components.report.comparison import as_evaluated
from components.report.decision import VERIFIER, commands, facts, not_judged, question, rollback
from components.report.page import run_health
from components.report.verdict import grouped, headline, open_checks, read_checks
from components.types import StepRecord

D12 = fixture.DIGEST[:12]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Run:
    sets = "health.canaries={fairness: {generated: names}, medicine: {generated: layout}}"
    return load_run(fixture.settings("train.steps=60", sets), fixture.healthy(tmp_path_factory.mktemp("healthy")))


def judged(run: Run, *results: str, **more: str) -> Run:
    checks = [
        {"name": f"check {i}", "result": result, "evidence": f"seen {i}", **more} for i, result in enumerate(results)
    ]
    worst = next((word for word in ("fail", "inconclusive") if word in results), "pass")
    return replace(run, judgement={"result": worst, "checks": checks, "policy_sha256": "c" * 64})


def fact(run: Run, title: str) -> tuple[str, str, str]:
    found = next(one for one in facts(run, run_health(run)) if one.title == title)
    return found.value.replace("\u00a0", " "), found.detail.replace("\u00a0", " "), found.tone


def test_it_asks_one_question_and_says_the_exact_commands(healthy: Run) -> None:
    head = headline(healthy)
    assert question(healthy, head) == f"May checkpoint {D12} of run demo become the champion?"
    assert [command.line for command in commands(healthy, head)] == [
        f'evenkeel approve {D12} --by YOUR-NAME --reason "WHY"',
        f'evenkeel reject {D12} --by YOUR-NAME --reason "WHY"',
    ]
    assert rollback(healthy).line == 'evenkeel rollback --by YOUR-NAME --reason "WHY"'


def test_the_commands_name_the_configuration_of_another_registry(healthy: Run) -> None:
    assert rollback(replace(healthy, config="my run.yaml")).line.endswith("--config 'my run.yaml'")
    bucket = RegistrySettings(kind="s3", bucket="team")
    elsewhere = replace(healthy, settings=healthy.settings.model_copy(update={"registry": bucket}))
    assert rollback(elsewhere).line.endswith("--config YOUR-CONFIG")


def test_three_to_five_facts_with_intervals_say_what_is_known(healthy: Run) -> None:
    assert 3 <= len(facts(healthy, run_health(healthy))) <= 5
    value, detail, tone = fact(healthy, "Gain over SFT")
    assert (value, tone) == ("+55.3 points", "good")
    assert detail.startswith("95 % interval +52.1 to +58.2; pass@1 33.1 % → 88.4 % on 512")
    assert fact(healthy, "Training health")[0] == "Warned"
    assert fact(healthy, "Verifier")[:2] == (
        "passed its audit",
        "wrong answers accepted of at most 0.1 % of the prompts (95 % bound), limit 2.0 %",
    )


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("pass", ("passed its audit", "good")),
        ("fail", ("failed the gate", "bad")),
        ("inconclusive", ("left to you by the gate", "unsure")),
    ],
)
def test_of_the_verifier_the_gates_limit_counts_and_not_the_one_that_the_run_has_set(
    healthy: Run, result: str, expected: tuple[str, str]
) -> None:
    check = {"name": VERIFIER, "result": result, "evidence": "a wrong answer was accepted: at most 3.0%, limit 2.0%"}
    run = replace(healthy, judgement={"result": result, "checks": [check], "policy_sha256": "c" * 64})
    value, detail, tone = fact(run, "Verifier")
    assert ((value, tone), detail) == (expected, check["evidence"])
    assert VERIFIER in CHECKS


def test_no_champion_is_distinguished_from_a_champion_without_a_comparison(healthy: Run) -> None:
    assert fact(healthy, "Gain over the champion")[0] == "not compared"
    asked = judged(healthy, "pass")
    assert fact(asked, "Gain over the champion")[0] == "no champion yet"
    assert fact(replace(asked, champion={"digest": "a" * 64}), "Gain over the champion")[::2] == (
        "not measured",
        "unsure",
    )


def test_a_newer_comparison_with_the_champion_replaces_that_of_the_run(healthy: Run) -> None:
    newer = {"champion": fixture.side(0.8), "gain_over_champion": {"mean": -0.02, "low": -0.05, "high": 0.01}}
    value, detail, tone = fact(replace(healthy, comparison=newer), "Gain over the champion")
    assert (value, tone) == ("−2.0 points", "unsure")
    assert "pass@1 80.0 % → 88.4 %" in detail
    figures = {"candidate": fixture.side(0.9), "champion": {"unscorable_share": 0.0}}
    found = {"prompts": 300, "gain": {"mean": 0.02, "low": 0.01, "high": 0.03}, "figures": figures}
    shown = replace(healthy, comparison=as_evaluated(found))
    assert fact(shown, "Gain over the champion")[::2] == ("+2.0 points", "good")
    assert "It is better than the champion (+2.0 points, +1.0 to +3.0)." in headline(shown).sentence


def test_a_candidate_without_a_right_answer_is_shown_with_0_percent(healthy: Run) -> None:
    worse = {"mean": -0.8, "low": -0.85, "high": -0.75}
    figures = {"candidate": fixture.side(0.0), "champion": fixture.side(0.8)}
    run = replace(healthy, comparison=as_evaluated({"prompts": 300, "gain": worse, "figures": figures}))
    value, detail, tone = fact(run, "Gain over the champion")
    assert (value, tone) == ("−80.0 points", "bad")
    assert "pass@1 80.0 % → 0.0 % on the same prompts" in detail


def test_a_gain_on_a_handful_of_prompts_is_neither_good_nor_bad(healthy: Run) -> None:
    few = {**(healthy.evaluation or {}), "prompts": 2, "gain": {"mean": 0.5, "low": 0.4, "high": 0.6}}
    value, detail, tone = fact(replace(healthy, evaluation=few), "Gain over SFT")
    assert (value, tone) == ("+50.0 points", "unsure")
    assert detail.startswith("95 % interval +40.0 to +60.0, few prompts; ") and "on 2 held-out prompts" in detail
    assert "shows no clear change" in headline(replace(healthy, evaluation=few)).sentence


def test_a_gain_of_nothing_on_any_prompt_has_no_interval(healthy: Run) -> None:
    same = {**(healthy.evaluation or {}), "gain": {"mean": 0.0, "low": 0.0, "high": 0.0}}
    assert fact(replace(healthy, evaluation=same), "Gain over SFT")[1].startswith("no interval: no prompt came out")
    assert (
        "(0.0 points, no interval: no prompt came out differently)"
        in headline(replace(healthy, evaluation=same)).sentence
    )


def test_a_name_of_a_run_hides_and_reorders_nothing_in_the_question(healthy: Run) -> None:
    asked = question(replace(healthy, origin={"run": "a\u202eb"}), headline(healthy))
    assert asked == f"May checkpoint {D12} of run a\\u202eb become the champion?"


def test_canaries_are_reported_with_how_many_held_and_which_one_fell_most(healthy: Run) -> None:
    value, detail, tone = fact(healthy, "Canaries")
    assert (value, tone) == ("1 probe set lost", "bad")
    assert "medicine" in detail
    quiet = replace(healthy, records=[StepRecord(0, {"accuracy": 0.5}, {})])
    assert fact(quiet, "Canaries")[0] == "not measured"
    assert any("no canaries were measured" in sentence for sentence in not_judged(quiet, run_health(quiet)))


def test_probe_sets_are_shown_before_while_and_after_with_their_limit(healthy: Run) -> None:
    rows = {row.name: row for row in canary_rows(healthy)}
    assert set(rows) == {"fairness", "medicine"}
    assert (rows["fairness"].before, rows["fairness"].after, rows["fairness"].result) == (0.9, 0.9, "held")
    assert (rows["medicine"].step, rows["medicine"].limit, rows["medicine"].result) == (40, 0.05, "lost")


def probed(run: Run, drop: dict[str, Any], way: dict[str, Any] | None = None, **one: Any) -> Run:
    """The run with one probe set that was scored by likelihood before and after training."""
    sides = {"sft": {"score": 0.9}, "trained": {"score": 0.95}, "while_training": {"score": 0.8, "step": 7}}
    content = {"sha256": "5e7", "by": {"likelihood": {**sides, "drops": [drop], **(way or {})}}}
    chosen = {"bbq": CanarySettings(path=Path("p"), by=("likelihood",), max_drop=0.05, **one)}
    health = run.settings.health.model_copy(update={"canaries": chosen})
    settings = run.settings.model_copy(update={"health": health})
    return replace(run, settings=settings, canaries={"said": "", "sets": {"bbq": content}})


FELL = {"mean": 0.02, "se": 0.0255, "n": 32, "stratum": "ambiguous"}


def test_what_the_canaries_came_to_after_training_counts_before_what_was_seen_on_the_way(healthy: Run) -> None:
    run = probed(healthy, FELL)
    (row,) = canary_rows(run)
    assert (row.before, row.lowest, row.step, row.after, row.change) == (0.9, 0.8, 7, 0.95, -0.02)
    assert (row.limit, row.part, row.result) == (0.05, "ambiguous", "not sure")
    assert (row.low, row.high) == pytest.approx((-0.07, 0.03), abs=1e-4)
    assert fact(run, "Canaries") == (
        "0 of 1 held",
        "largest fall: bbq −2.0 points, 95 % interval −7.0 to +3.0",
        "unsure",
    )
    assert not any("probe set bbq" in said for said in attention(run)), "it may be chance"
    surely = probed(healthy, {**FELL, "se": 0.005})
    assert any("The probe set bbq (by likelihood) fell: −2.0 points" in said for said in attention(surely))
    without = replace(run, settings=healthy.settings.model_copy(update={"health": HealthSettings()}))
    assert canary_rows(replace(without, canaries={"said": "no probe sets", "sets": {}})) == []


def test_canaries_are_judged_by_the_limits_of_the_policy_where_those_are_tighter(healthy: Run) -> None:
    run = probed(healthy, {**FELL, "se": 0.001, "n": 900})
    assert fact(run, "Canaries")[::2] == ("all 1 held", "good")
    strict = replace(run, required={"bbq": RequiredCanary(max_drop=0.01)})
    (row,) = canary_rows(strict)
    assert (row.limit, row.result) == (0.01, "lost")
    assert fact(strict, "Canaries")[::2] == ("1 probe set lost", "bad")


def test_a_set_that_is_asked_for_and_absent_or_another_has_a_row_that_says_so(healthy: Run) -> None:
    asked = {"bbq": RequiredCanary(sha256="0" * 64), "refusals": RequiredCanary()}
    for run in (probed(healthy, FELL), replace(probed(healthy, FELL), canaries=None)):
        rows = {row.name: row for row in canary_rows(replace(run, required=asked)) if row.result == "missing"}
        assert rows["refusals"].note == "the policy asks for this probe set, and the run has none of that name"
        assert ("bbq" in rows) is (run.canaries is not None)
    shown = fact(replace(probed(healthy, FELL), required=asked), "Canaries")
    assert shown == ("2 probe sets missing", "bbq, refusals", "bad")
    page = render(replace(probed(healthy, FELL), required=asked))
    assert "the run has none of that name" in page


def test_a_lost_margin_is_shown_in_nats_with_its_limit(healthy: Run) -> None:
    still = {"mean": 0.0, "se": 0.0, "n": 900, "stratum": ""}
    fell = {"margin_drops": [{**still, "mean": 20.0, "lost": 0}]}
    run = probed(healthy, still, fell, max_margin_drop=0.5)
    (row,) = canary_rows(run)
    assert (row.change, row.margin, row.margin_limit, row.result) == (0, -20.0, 0.5, "lost")
    page = render(run).replace("\u00a0", " ")
    assert "margin −20.00 nats" in page
    assert "margin 0.5 nats" in page
    broken = {"margin_drops": [{**still, "n": 899, "lost": 1}]}
    assert "margin lost of 1 probe<" in render(probed(healthy, still, broken, max_margin_drop=0.5))


def test_canaries_are_never_shown_as_better_than_the_gate_judged_them(healthy: Run) -> None:
    """The policy of then is not kept: what it came to is on record."""
    held = probed(healthy, {**FELL, "se": 0.001, "n": 900})
    shown_as = {"fail": ("failed the gate", "bad"), "inconclusive": ("left to you by the gate", "unsure")}
    for result, expected in shown_as.items():
        check = {"name": "canaries", "result": result, "evidence": "bbq -2.0 points, limit -1.0"}
        run = replace(held, judgement={"result": result, "checks": [check], "policy_sha256": "c" * 64})
        value, detail, tone = fact(run, "Canaries")
        assert ((value, tone), detail) == (expected, check["evidence"])
        page = render(run)
        assert "The gate: bbq -2.0 points, limit -1.0." in page
        assert "what the policy of that time required is not known any more" in page


def test_probes_that_say_nothing_about_a_bias_are_counted_in_the_note_of_their_set(healthy: Run) -> None:
    (row,) = canary_rows(probed(healthy, FELL, {"trained": {"score": 0.95, "bias": {"without": 3.0}}}))
    assert row.note == "3 probes without a stereotyped answer"


def test_the_answer_by_the_policy_counts_before_the_runs_own(healthy: Run) -> None:
    failed = judged(healthy, "pass", "fail")
    assert headline(failed).title == "Gate failed: nothing to approve"
    assert commands(failed, headline(failed)) == []


def test_what_is_inconclusive_is_a_persons_to_decide_and_comes_first_unless_something_failed(healthy: Run) -> None:
    open_ = judged(healthy, "pass", "inconclusive", "fail")
    assert [check.result for check in open_checks(read_checks(open_))] == ["fail", "inconclusive"]
    unsure = judged(healthy, "pass", "inconclusive")
    assert headline(unsure).approvable
    assert headline(unsure).title == "Gate inconclusive: a person has to judge"


def test_an_inconclusive_gate_without_its_evidence_cannot_be_approved(healthy: Run, tmp_path: Path) -> None:
    layout = fixture.healthy(tmp_path)
    fixture.gate(layout, "inconclusive", [("gain", "inconclusive", "too few prompts")])
    layout.evaluation.unlink()
    run = load_run(fixture.settings(), layout)
    assert not headline(run).approvable
    assert commands(run, headline(run)) == []


def test_every_check_answers_one_of_five_questions_and_gravest_come_first(healthy: Run) -> None:
    names = ["held-out gain", "canaries", "training health", "data validated", "lineage", "weather"]
    checks = [{"name": name, "result": "fail" if name == "lineage" else "pass", "evidence": ""} for name in names]
    groups = grouped(read_checks(replace(healthy, gate={"checks": checks})))
    assert next(iter(groups)) == "Is it what it says it is?"
    assert [check.name for group in groups.values() for check in group] == [
        "lineage", "held-out gain", "canaries", "training health", "data validated", "weather",
    ]  # fmt: skip


def test_a_check_that_did_not_pass_says_what_would_change_it_in_the_gates_own_words(healthy: Run) -> None:
    (own,) = read_checks(judged(healthy, "fail", how="sign it"))
    assert own.change == "sign it"
    checks = [{"name": "held-out gain", "result": "fail", "evidence": "x"}, {"name": "triage", "result": "pass"}]
    of_old, passed = read_checks(replace(healthy, gate={"checks": checks}))
    assert of_old.change == passed.change == "", "a record of an earlier version does not say"
