"""The gate: every check on evidence that passes, that fails, and that is missing."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from components.config import Settings
from components.config.audit import AuditSettings
from components.config.data import DataSettings, ValidationSettings
from components.config.evaluation import ChampionSettings, EvaluationSettings
from components.config.judgement import GateSettings, HealthSettings, PrometheusSettings, RuleSettings
from components.config.training import TrainSettings
from components.evaluation.results import PromptResult
from components.evaluation.summary import compare
from components.files import read_json, read_jsonl, sha256_tree, write_json, write_jsonl
from components.gate.checks import CHECKS, conclude, policy_sha256
from components.health.monitor import replay
from components.health.responses.under_watch import UNDER_WATCH
from components.layout import Layout
from components.stages.gate import run
from components.types import GateCheck, Level, Outcome, Response, StepRecord, Verdict

STEPS = 10
RULES = {
    "low": RuleSettings(when="entropy < 0.5", streak=3, level="warn", why="low entropy"),
    "broken": RuleSettings(when="nonfinite > 0", level="stop", why="broken numbers"),
}
SETTINGS = Settings(train=TrainSettings(steps=STEPS), health=HealthSettings(rules=RULES))


def records(**columns: Callable[[int], float]) -> list[StepRecord]:
    signals: dict[str, Callable[[int], float]] = {"entropy": lambda _: 1.0, "nonfinite": lambda _: 0.0, **columns}
    return [StepRecord(step, {name: value(step) for name, value in signals.items()}) for step in range(STEPS)]


def log(layout: Layout, run_records: list[StepRecord]) -> None:
    """The log of a run and the verdicts its monitor gave."""
    write_jsonl(layout.records, [record.to_dict() for record in run_records])
    verdicts = replay(RULES, run_records)
    write_jsonl(layout.train / "verdicts.jsonl", [verdict.to_dict() for verdict in verdicts])
    write_ledger(layout, [entry(verdict, verdict.level) for verdict in verdicts])


def entry(verdict: Verdict, level: Level, number: int = 1) -> Response:
    return Response(number, verdict.step, verdict.rule, verdict.level, level, verdict.reason, verdict.evidence)


def write_ledger(layout: Layout, entries: Sequence[Response | Outcome]) -> None:
    write_jsonl(layout.ledger, [one.to_dict() for one in entries])


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A run that passes every check."""
    layout = Layout(tmp_path)
    checkpoint = layout.train_checkpoint
    checkpoint.mkdir(parents=True)
    save_file({"weight": np.zeros((2, 2), dtype=np.float32)}, checkpoint / "model.safetensors")
    (checkpoint / "config.json").write_text(json.dumps({"model_type": "qwen3"}))
    (checkpoint / "tokenizer.json").write_text("{}")
    digest = sha256_tree(checkpoint)
    log(layout, records())
    side = {"truncated_share": 0.01, "unscorable_share": 0.0}
    write_json(layout.validation, {"rows": 100, "quarantined": 1, "success": True})
    rate = {"rate": 0.0, "high": 0.001}
    measured = {"kinds": [], "false_positive": rate, "false_negative": rate}
    write_json(layout.audit, {"verdict": "pass", "reasons": [], **measured})
    write_json(layout.admission, {"verdict": "clear", "withheld": [], "flagged": []})
    write_json(layout.triage, {"verdict": "accept", "reasons": []})
    overrides = {"audit": "pass", "audit_override": "", "triage": "accept", "override": ""}
    ended = {"outcome": "completed", "steps": STEPS, "progress": STEPS, "checkpoint_sha256": digest}
    write_json(layout.train_metrics, {**ended, **overrides})
    write_json(layout.canaries, {"said": "no probe sets", "sets": {}, "checkpoint_sha256": digest})
    write_json(
        layout.evaluation,
        {
            "sft": side,
            "trained": side,
            "gain": {"mean": 0.4, "low": 0.35, "high": 0.45, "confidence": 0.95, "n": 512},
            "contamination": {"worst_share": 0.01, "worst": "test"},
            "checkpoint_sha256": digest,
        },
    )
    return layout


def judged(layout: Layout, settings: Settings = SETTINGS) -> dict[str, Any]:
    run(settings, layout)
    found: dict[str, Any] = read_json(layout.gate)
    return found


def check(layout: Layout, name: str, settings: Settings = SETTINGS) -> tuple[str, str]:
    """Result and evidence of one check; no other check may be affected."""
    checks = {c["name"]: c for c in judged(layout, settings)["checks"]}
    assert [c["name"] for c in checks.values() if c["result"] != "pass"] in ([], [name])
    return checks[name]["result"], checks[name]["evidence"]


def change(layout: Layout, changes: str) -> None:
    """Change figures: each a place, such as ``evaluation.gain.low`` of the layout, and the JSON there from now on."""
    for pair in changes.split():
        place, _, value = pair.partition("=")
        part, *keys = place.split(".")
        edit(getattr(layout, part), json.loads(value), *keys)


def edit(path: Path, value: object, *keys: str) -> None:
    tree = read_json(path)
    node = tree
    for key in keys[:-1]:
        node = node[key]
    if value is None:
        del node[keys[-1]]
    else:
        node[keys[-1]] = value
    write_json(path, tree)


def test_a_healthy_run_passes_every_check(layout: Layout) -> None:
    gate = judged(layout)
    assert gate["result"] == "pass"
    assert [c["name"] for c in gate["checks"]] == list(CHECKS)
    assert gate["checkpoint_sha256"] == sha256_tree(layout.train_checkpoint)


def test_the_same_evidence_gives_the_same_bytes_wherever_it_lies(layout: Layout, tmp_path: Path) -> None:
    layout.evaluation.unlink()
    judged(layout)
    first = layout.gate.read_bytes()
    assert str(tmp_path).encode() not in first
    judged(layout)
    assert layout.gate.read_bytes() == first


# --- missing evidence is a fail, never a default


@pytest.mark.parametrize(
    ("part", "failed"),
    [
        ("validation", {"data validated"}),
        ("audit", {"verifier audited"}),
        ("admission", {"prompts admitted"}),
        ("triage", {"triage"}),
        ("train_metrics", {"verifier audited", "triage", "training completed", "same checkpoint"}),
        ("evaluation", {"held-out gain", "truncated", "unscorable", "contaminated", "same checkpoint"}),
        ("canaries", {"canaries", "same checkpoint"}),
        ("records", {"training health", "training completed"}),
    ],
)
def test_a_missing_file_fails_the_checks_that_need_it(layout: Layout, part: str, failed: set[str]) -> None:
    getattr(layout, part).unlink()
    gate = judged(layout)
    assert gate["result"] == "fail"
    found = {c["name"]: c["evidence"] for c in gate["checks"] if c["result"] == "fail"}
    assert set(found) == failed
    assert all("file not found" in evidence for evidence in found.values())


def test_without_any_evidence_every_check_fails(tmp_path: Path) -> None:
    gate = judged(Layout(tmp_path))
    assert {c["result"] for c in gate["checks"]} == {"fail"}
    assert gate["checkpoint_sha256"] is None


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("validation.success", "data validated"),
        ("validation.rows", "data validated"),
        ("audit.false_positive.high", "verifier audited"),
        ("audit.false_negative.rate", "verifier audited"),
        ("audit.kinds", "verifier audited"),
        ("triage.verdict", "triage"),
        ("train_metrics.outcome", "training completed"),
        ("train_metrics.steps", "training completed"),
        ("train_metrics.checkpoint_sha256", "same checkpoint"),
        ("evaluation.gain", "held-out gain"),
        ("evaluation.gain.low", "held-out gain"),
        ("evaluation.gain.n", "held-out gain"),
        ("evaluation.trained.truncated_share", "truncated"),
        ("evaluation.trained.unscorable_share", "unscorable"),
        ("evaluation.sft.unscorable_share", "unscorable"),
        ("evaluation.contamination.worst_share", "contaminated"),
        ("evaluation.contamination.worst", "contaminated"),
        ("evaluation.checkpoint_sha256", "same checkpoint"),
    ],
)
def test_a_missing_figure_fails(layout: Layout, figure: str, name: str) -> None:
    change(layout, f"{figure}=null")
    result, evidence = check(layout, name)
    assert (result, f"there is no {figure.partition('.')[2]}" in evidence) == ("fail", True)


@pytest.mark.parametrize("value", ["0.9", True, [1]])
def test_a_figure_that_is_no_number_fails(layout: Layout, value: object) -> None:
    edit(layout.evaluation, value, "gain", "low")
    assert check(layout, "held-out gain")[0] == "fail"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ("admission.withheld=7", "prompts admitted"),
        (
            'triage.reasons=7 triage.verdict="refuse" train_metrics.triage="overridden" train_metrics.override="why"',
            "triage",
        ),
        (
            'audit.reasons=7 audit.verdict="fail" train_metrics.audit="overridden" train_metrics.audit_override="why"',
            "verifier audited",
        ),
    ],
)
def test_evidence_of_another_form_fails_without_an_error(layout: Layout, changes: str, name: str) -> None:
    change(layout, changes)
    result, evidence = check(layout, name)
    assert (result, "another form than it must have" in evidence) == ("fail", True)


@pytest.mark.parametrize("share", [-0.5, 1.1])
@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("audit.false_positive.rate", "verifier audited"),
        ("audit.false_positive.high", "verifier audited"),
        ("audit.false_negative.rate", "verifier audited"),
        ("evaluation.trained.truncated_share", "truncated"),
        ("evaluation.trained.unscorable_share", "unscorable"),
        ("evaluation.sft.unscorable_share", "unscorable"),
        ("evaluation.contamination.worst_share", "contaminated"),
    ],
)
def test_a_share_that_is_none_fails(layout: Layout, figure: str, name: str, share: float) -> None:
    change(layout, f"{figure}={share}")
    assert check(layout, name) == ("fail", f"{figure.replace('.', ': ', 1)} cannot be a share: {share:g}")


@pytest.mark.parametrize("end", ["mean=-1.0", "mean=0.3", "high=0.39", "low=0.41", "high=1.1"])
def test_a_gain_outside_its_interval_or_greater_than_there_is_room_for_fails(layout: Layout, end: str) -> None:
    change(layout, f"evaluation.gain.{end}")
    result, evidence = check(layout, "held-out gain")
    assert (result, "evaluation.gain cannot be a difference of two shares" in evidence) == ("fail", True)


def test_a_mean_that_rounding_put_beyond_its_interval_is_one(layout: Layout) -> None:
    edit(layout.evaluation, {"mean": 0.3, "low": 0.1 + 0.2, "high": 0.1 + 0.2, "n": 400}, "gain")
    assert check(layout, "held-out gain")[0] == "pass"


def test_a_figure_that_is_not_finite_fails(layout: Layout) -> None:
    text = layout.evaluation.read_text()
    layout.evaluation.write_text(text.replace("0.35", "NaN"))
    assert "not a finite number" in check(layout, "held-out gain")[1]


# --- each check


KIND = '{"kind":"last","must_be":"%s","judged_wrongly":%d,"probes":3}'
AUDIT = 'audit.verdict="%s" train_metrics.audit="%s" audit.reasons=["loose"] train_metrics.audit_override="%s"'
TRIAGE = 'triage.verdict="%s" train_metrics.triage="%s" triage.reasons=["0.1<0.18"] train_metrics.override="%s"'
CONTAMINATED = 'evaluation.contamination.worst="gsm8k" evaluation.contamination.worst_share=%s'
OF_GSM8K = "of the prompts of gsm8k found in the training data, limit 1.0%"
HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("changes", "name", "result", "said"),
    [
        ("validation.success=false", "data validated", "fail", ""),
        ("validation.rows=0 validation.quarantined=0", "data validated", "fail", "0 rows validated, 0 quarantined"),
        ("validation.quarantined=-1", "data validated", "fail", "validation: -1 of 100 rows cannot be in quarantine"),
        ("validation.quarantined=101", "data validated", "fail", "101 of 100 rows cannot be in quarantine"),
        # The data stage refuses too many; the gate does not go by its word.
        ("validation.quarantined=0", "data validated", "pass", "100 rows validated, 0 quarantined, limit 1.0%"),
        ("validation.quarantined=1", "data validated", "pass", "100 rows validated, 1 quarantined, limit 1.0%"),
        ("validation.quarantined=2", "data validated", "fail", "100 rows validated, 2 quarantined, limit 1.0%"),
        ("audit.false_negative.rate=0.02", "verifier audited", "fail", "a right one was refused: 2.0%, limit 1.0%"),
        (f"audit.kinds=[{KIND % ('refused', 2)}]", "verifier audited", "fail", "2 of 3 answers of one sort were not"),
        (f"audit.kinds=[{KIND % ('refused', 1)}]", "verifier audited", "pass", ""),
        (f"audit.kinds=[{KIND % ('accepted', 2)}]", "verifier audited", "fail", "sort were not accepted, limit"),
        (f"audit.kinds=[{KIND % ('accepted', 0)}]", "verifier audited", "pass", ""),
        (f"audit.kinds=[{KIND % ('refused', 4)}]", "verifier audited", "fail", "cannot be"),
        (f"audit.kinds=[{KIND % ('refused', -1)}]", "verifier audited", "fail", "cannot be"),
        (f"audit.kinds=[{KIND % ('either', 0)}]", "verifier audited", "fail", "cannot be"),
        (AUDIT % ("fail", "overridden", "why"), "verifier audited", "inconclusive", "failed (loose), overridden: why"),
        (AUDIT % ("fail", "pass", ""), "verifier audited", "fail", "the audit said 'fail' and training says 'pass'"),
        (AUDIT % ("pass", "overridden", ""), "verifier audited", "fail", "with no reason given"),
        (AUDIT % ("fail", "overridden", ""), "verifier audited", "fail", "with no reason given"),
        ('admission.withheld=["p"] admission.flagged=[1]', "prompts admitted", "pass", "1 training prompts withheld;"),
        (TRIAGE % ("refuse", "overridden", "why"), "triage", "inconclusive", "refused (0.1<0.18), overridden: why"),
        (TRIAGE % ("refuse", "accept", "why"), "triage", "fail", "triage said 'refuse' and training says 'accept'"),
        (TRIAGE % ("accept", "overridden", "why"), "triage", "fail", "with no reason given"),
        (TRIAGE % ("refuse", "overridden", ""), "triage", "fail", "with no reason given"),
        (f"train_metrics.progress={STEPS - 1}", "training completed", "fail", "completed after 9 of 10 steps"),
        ('train_metrics.outcome="stopped"', "training completed", "fail", "stopped after 10 of 10 steps"),
        ("train_metrics.steps=9", "training completed", "fail", ""),
        ("train_metrics.steps=1e308", "training completed", "fail", ""),
        (f"train_metrics.steps={HUGE}", "training completed", "fail", "larger than any figure"),
        ("evaluation.gain.high=1e308", "held-out gain", "fail", ""),
        (f"evaluation.gain.high={HUGE}", "held-out gain", "fail", "larger than any figure"),
        ("evaluation.trained.truncated_share=0.1", "truncated", "pass", ""),
        ("evaluation.trained.truncated_share=0.11", "truncated", "fail", ""),
        ("evaluation.sft.unscorable_share=0.02", "unscorable", "fail", ""),
        ("evaluation.trained.unscorable_share=0.02", "unscorable", "fail", ""),
        (CONTAMINATED % 0.01, "contaminated", "pass", f"1.0% {OF_GSM8K}"),
        (CONTAMINATED % 0.011, "contaminated", "fail", f"1.1% {OF_GSM8K}"),
        ('train_metrics.checkpoint_sha256="0"', "same checkpoint", "fail", "train.json 0"),
        ('evaluation.checkpoint_sha256="0"', "same checkpoint", "fail", "evaluation.json 0"),
    ],
)
def test_a_check_goes_by_its_figures(layout: Layout, changes: str, name: str, result: str, said: str) -> None:
    change(layout, changes)
    found, evidence = check(layout, name)
    assert (found, said in evidence) == (result, True)
    assert judged(layout)["result"] == result


def test_limits_that_a_stage_has_too_are_those_of_the_gate_by_default() -> None:
    gate, data, audit = GateSettings(), ValidationSettings(), AuditSettings()
    assert gate.max_quarantined == data.max_quarantined
    assert (gate.max_false_positive, gate.max_false_negative) == (audit.max_false_positive, audit.max_false_negative)


def test_what_a_stage_was_allowed_is_not_what_the_gate_lets_pass(layout: Layout) -> None:
    data = DataSettings(validation=ValidationSettings(max_quarantined=1))
    lenient = SETTINGS.model_copy(update={"data": data, "audit": AuditSettings(max_false_positive=1)})
    edit(layout.validation, 97, "quarantined")
    found = check(layout, "data validated", lenient)
    assert found == ("fail", "100 rows validated, 97 quarantined, limit 1.0%")
    wide = lenient.model_copy(update={"gate": GateSettings(max_quarantined=1)})
    assert check(layout, "data validated", wide)[0] == "pass"
    edit(layout.validation, 1, "quarantined")
    edit(layout.audit, {"rate": 0.9, "high": 0.95}, "false_positive")
    result, evidence = check(layout, "verifier audited", lenient)
    assert (result, "90.0%, at most 95.0%, limit 2.0%" in evidence) == ("fail", True)
    wide = lenient.model_copy(update={"gate": GateSettings(max_false_positive=1)})
    assert check(layout, "verifier audited", wide)[0] == "pass"


def test_warnings_pass_and_are_named(layout: Layout) -> None:
    log(layout, records(entropy=lambda _: 0.4))
    assert check(layout, "training health") == ("pass", "warnings: low (step 2)")


def test_a_stop_fails_naming_rule_and_step(layout: Layout) -> None:
    log(layout, records(nonfinite=lambda step: float(step == 7)))
    result, evidence = check(layout, "training health")
    assert result == "fail"
    assert "broken" in evidence and "step 7" in evidence


def test_a_monitor_that_was_off_does_not_hide_a_stop(layout: Layout) -> None:
    off = SETTINGS.model_copy(update={"health": HealthSettings(rules=RULES, enabled=False)})
    write_jsonl(layout.train / "verdicts.jsonl", [])
    assert check(layout, "training health", off)[0] == "inconclusive"
    write_jsonl(layout.records, [r.to_dict() for r in records(nonfinite=lambda step: float(step == 7))])
    assert check(layout, "training health", off)[0] == "fail"


def test_no_rules_is_no_health(layout: Layout) -> None:
    bare = SETTINGS.model_copy(update={"health": HealthSettings()})
    assert check(layout, "training health", bare)[0] == "inconclusive"


def test_a_log_whose_verdicts_do_not_replay_fails(layout: Layout) -> None:
    log(layout, records(entropy=lambda _: 0.4))
    write_jsonl(layout.train / "verdicts.jsonl", [])
    result, evidence = check(layout, "training health")
    assert result == "fail"
    assert "does not replay: 0 verdicts while training, 1 now" in evidence


ACTING = {
    **RULES,
    "reach": RuleSettings(
        when="kl_ref > 0.1", level="rollback", why="far away", action=({"knob": "learner.lr", "times": 0.5},)
    ),
}
WATCHED = SETTINGS.model_copy(update={"health": HealthSettings(rules=ACTING)})


def acted_upon(layout: Layout, recovered: bool | None) -> None:
    """A run that the rule `reach` took back once, with or without success."""
    run_records = records(kl_ref=lambda step: 0.2 if step == 4 else 0.0)
    log(layout, run_records)
    verdicts = replay(ACTING, run_records)
    write_jsonl(layout.train / "verdicts.jsonl", [verdict.to_dict() for verdict in verdicts])
    write_ledger(layout, [entry(verdicts[0], "rollback"), Outcome(of=1, step=9, recovered=recovered)])


@pytest.mark.parametrize(("recovered", "result"), [(True, "pass"), (False, "fail"), (None, "inconclusive")])
def test_a_run_that_was_acted_upon_passes_where_that_is_known_to_have_helped(
    layout: Layout, recovered: bool | None, result: str
) -> None:
    acted_upon(layout, recovered)
    found, evidence = check(layout, "training health", WATCHED)
    assert (found, "reach (step 4)" in evidence) == (result, True)


def test_what_a_later_response_to_the_same_rule_resolved_is_resolved(layout: Layout) -> None:
    acted_upon(layout, False)
    (first, outcome) = read_jsonl(layout.ledger)
    again = {**first, "number": 2, "step": 6}
    write_jsonl(layout.ledger, [first, outcome, again, {**outcome, "of": 2, "recovered": True}])
    assert check(layout, "training health", WATCHED)[0] == "pass"


@pytest.mark.parametrize(("part", "result"), [("sampler", "fail"), ("learner", "pass")])
def test_a_fault_that_came_back_under_watch_is_unresolved_though_the_run_recovered_from_it_before(
    layout: Layout, part: str, result: str
) -> None:
    acted_upon(layout, True)
    (first, outcome) = read_jsonl(layout.ledger)
    watch = {**first, "level": "intervene", "part": "sampler", "changes": [asdict(UNDER_WATCH)]}
    later = {**first, "number": 2, "step": 7, "level": "warn", "part": part}
    write_jsonl(layout.ledger, [watch, outcome, later])
    found, evidence = check(layout, "training health", WATCHED)
    assert (found, "under watch" in evidence) == (result, result == "fail")


@pytest.mark.parametrize(("end", "result"), [([15, 50], "fail"), ([29, 50], "pass")])
def test_a_family_that_is_not_what_it_was_at_its_best_fails(layout: Layout, end: list[int], result: str) -> None:
    rows = [record.to_dict() for record in records()]
    for step, products in ((1, [30, 50]), (4, [36, 50]), (8, end)):
        rows[step]["notes"]["held_out"] = {"all": [70, 100], "sums": [40, 50], "products": products}
    write_jsonl(layout.records, rows)
    found, evidence = check(layout, "training health")
    assert found == result
    said = "held-out accuracy of products was 36 of 50 at its best and is 15 of 50 at the end"
    assert (said in evidence) == (result == "fail")


@pytest.mark.parametrize("counts", [[], {"all": [3, 2]}, {"all": [1, 0]}, {"all": 0.5}, {"all": [True, True]}])
def test_counts_that_are_none_fail(layout: Layout, counts: object) -> None:
    rows = [record.to_dict() for record in records()]
    rows[3]["notes"]["held_out"] = counts
    write_jsonl(layout.records, rows)
    assert check(layout, "training health")[0] == "fail"


def test_a_roll_back_that_was_asked_for_and_not_made_fails(layout: Layout) -> None:
    acted_upon(layout, True)
    health = HealthSettings(rules=ACTING, responses={"enabled": False})
    idle = WATCHED.model_copy(update={"health": health})
    assert check(layout, "training health", idle)[0] == "fail"


def test_an_acting_rule_whose_signal_was_never_recorded_fails_unless_it_is_optional(layout: Layout) -> None:
    missing = "could not be judged for want of signals: reach (kl_ref)"
    assert check(layout, "training health", WATCHED) == ("fail", missing)
    optional = {**ACTING, "reach": ACTING["reach"].model_copy(update={"optional": True})}
    lenient = WATCHED.model_copy(update={"health": HealthSettings(rules=optional)})
    assert check(layout, "training health", lenient)[0] == "pass"


def test_a_monitor_that_broke_fails_naming_the_step(layout: Layout) -> None:
    rows = [record.to_dict() for record in records()]
    rows[6]["notes"] = {"monitor_failed": "ValueError: a bug"}
    write_jsonl(layout.records, rows)
    assert check(layout, "training health") == ("fail", "nobody watched from step 6 on: ValueError: a bug")


def test_steps_that_were_undone_are_said(layout: Layout) -> None:
    edit(layout.train_metrics, STEPS - 2, "progress")
    short = WATCHED.model_copy(update={"train": TrainSettings(steps=STEPS - 2), "health": SETTINGS.health})
    result, evidence = check(layout, "training completed", short)
    assert (result, "2 more were undone" in evidence) == ("pass", True)


def test_missing_verdicts_fail_even_where_nothing_was_said(layout: Layout) -> None:
    (layout.train / "verdicts.jsonl").unlink()
    assert check(layout, "training health") == ("fail", "verdicts: file not found")


@pytest.mark.parametrize("lost", [0, 4, 9])
def test_a_record_with_a_gap_fails(layout: Layout, lost: int) -> None:
    log(layout, [record for record in records() if record.step != lost])
    assert check(layout, "training completed")[0] == "fail"


@pytest.mark.parametrize(("low", "result"), [(0.0501, "pass"), (0.05, "fail"), (-0.1, "fail")])
def test_the_lower_end_of_the_gain_must_exceed_the_limit(layout: Layout, low: float, result: str) -> None:
    edit(layout.evaluation, low, "gain", "low")
    strict = SETTINGS.model_copy(update={"gate": GateSettings(min_gain=0.05)})
    assert check(layout, "held-out gain", strict)[0] == result


@pytest.mark.parametrize(
    ("prompts", "low", "result"), [(60, 0.1, "pass"), (59, 0.1, "inconclusive"), (59, 0.0, "fail")]
)
def test_a_gain_on_too_few_prompts_is_left_to_a_person(layout: Layout, prompts: int, low: float, result: str) -> None:
    edit(layout.evaluation, prompts, "gain", "n")
    edit(layout.evaluation, low, "gain", "low")
    found, evidence = check(layout, "held-out gain")
    assert found == result
    assert ("59 prompts scorable under both are too few to tell, it takes 60" in evidence) == (prompts == 59)


def test_two_prompts_that_both_got_right_prove_nothing(layout: Layout) -> None:
    """Their interval from resampling alone would be +50 to +50."""
    before, after = (
        [PromptResult(str(i), "f", 1, (one, 0.0), 0.0, (5, 5), (False, False)) for i in range(2)] for one in (0.0, 1.0)
    )
    found = compare(before, after, EvaluationSettings(prompts=2, samples=2), seed=1)
    edit(layout.evaluation, found["gain"], "gain")
    assert check(layout, "held-out gain")[0] == "fail"
    anything = SETTINGS.model_copy(update={"gate": GateSettings(min_gain=-1)})
    assert check(layout, "held-out gain", anything)[0] == "inconclusive"


def test_what_did_not_pass_says_what_would_change_it_and_what_passed_does_not(layout: Layout) -> None:
    edit(layout.evaluation, 0.5, "contamination", "worst_share")
    assert {c["name"] for c in judged(layout)["checks"] if c.get("how")} == {"contaminated"}


def test_a_checkpoint_with_a_pickle_fails_and_is_not_named_for_proposal(layout: Layout) -> None:
    (layout.train_checkpoint / "optimizer.pt").write_bytes(b"")
    gate = judged(layout)
    assert gate["result"] == "fail"
    assert gate["checkpoint_sha256"] is None
    assert {c["name"] for c in gate["checks"] if c["result"] == "fail"} == {"checkpoint format", "same checkpoint"}


def test_a_checkpoint_changed_after_its_evaluation_fails(layout: Layout) -> None:
    save_file({"weight": np.ones((2, 2), dtype=np.float32)}, layout.train_checkpoint / "model.safetensors")
    assert check(layout, "same checkpoint")[0] == "fail"


# --- conclusion and policy


def test_one_fail_outweighs_and_one_doubt_keeps_from_passing() -> None:
    passed, doubtful, failed = (GateCheck("c", result, "") for result in ("pass", "inconclusive", "fail"))
    assert conclude([passed, doubtful, failed]) == "fail"
    assert conclude([passed, doubtful]) == "inconclusive"
    assert conclude([passed, passed]) == "pass"
    assert conclude([]) == "fail"


def test_the_policy_digest_follows_limits_and_rules_and_nothing_else() -> None:
    def with_(**update: Any) -> Settings:
        return SETTINGS.model_copy(update=update)

    base = policy_sha256(SETTINGS)
    assert policy_sha256(with_(seed=7, name="other")) == base
    assert policy_sha256(with_(gate=GateSettings(min_gain=0.1))) != base
    assert policy_sha256(with_(health=HealthSettings(rules={"low": RULES["low"]}))) != base
    assert policy_sha256(with_(health=HealthSettings(rules=RULES, enabled=False))) != base
    shown = PrometheusSettings(port=9400)
    assert policy_sha256(with_(health=HealthSettings(rules=RULES, prometheus=shown, rules_file="mine"))) == base


# The champion


CHALLENGED = SETTINGS.model_copy(
    update={"evaluation": EvaluationSettings(champion=ChampionSettings(path=Path("registry/trees/champion")))}
)


def over_champion(layout: Layout, low: float, unscorable: float = 0.0) -> None:
    edit(layout.evaluation, {"unscorable_share": unscorable}, "champion")
    edit(layout.evaluation, {"mean": low + 0.02, "low": low, "high": low + 0.04, "n": 512}, "gain_over_champion")


@pytest.mark.parametrize(("low", "result"), [(0.01, "pass"), (-0.02, "pass"), (-0.06, "fail")])
def test_a_checkpoint_must_not_be_clearly_worse_than_the_champion(layout: Layout, low: float, result: str) -> None:
    over_champion(layout, low)
    found, evidence = check(layout, "gain over champion", CHALLENGED)
    assert found == result
    assert f"{100 * low:+.1f} to" in evidence
    assert "must exceed -5.0" in evidence


@pytest.mark.parametrize(
    ("low", "unscorable", "result"), [(0.01, 0.0, "inconclusive"), (-0.06, 0.0, "fail"), (0.01, 0.02, "fail")]
)
def test_a_comparison_on_too_few_prompts_is_left_to_a_person(
    layout: Layout, low: float, unscorable: float, result: str
) -> None:
    over_champion(layout, low, unscorable)
    edit(layout.evaluation, 10, "gain_over_champion", "n")
    found, evidence = check(layout, "gain over champion", CHALLENGED)
    assert found == result
    assert "10 prompts scorable under both are too few to tell" in evidence


def test_a_limit_of_zero_asks_for_proof_that_it_is_better(layout: Layout) -> None:
    strict = CHALLENGED.model_copy(update={"gate": GateSettings(min_gain_over_champion=0)})
    over_champion(layout, -0.001)
    assert check(layout, "gain over champion", strict)[0] == "fail"


@pytest.mark.parametrize(("unscorable", "result"), [(0.01, "pass"), (0.02, "fail")])
def test_a_gain_on_the_few_prompts_that_the_champion_could_be_scored_on_is_none(
    layout: Layout, unscorable: float, result: str
) -> None:
    over_champion(layout, 0.5, unscorable)
    found, evidence = check(layout, "gain over champion", CHALLENGED)
    assert found == result
    assert f"{unscorable:.1%} of its completions unscorable, limit 1.0%" in evidence


def test_a_champion_whose_unscorable_completions_were_not_counted_fails(layout: Layout) -> None:
    over_champion(layout, 0.5)
    edit(layout.evaluation, {}, "champion")
    missing = "evaluation: there is no champion.unscorable_share"
    assert check(layout, "gain over champion", CHALLENGED) == ("fail", missing)


def test_a_champion_that_was_not_compared_with_fails(layout: Layout) -> None:
    missing = "evaluation: there is no gain_over_champion.mean"
    assert check(layout, "gain over champion", CHALLENGED) == ("fail", missing)


def test_without_a_champion_there_is_no_such_check_and_its_limit_is_no_part_of_the_policy(layout: Layout) -> None:
    names = [check["name"] for check in judged(layout)["checks"]]
    assert "gain over champion" not in names
    other = GateSettings(min_gain_over_champion=0)
    assert policy_sha256(SETTINGS.model_copy(update={"gate": other})) == policy_sha256(SETTINGS)
    assert policy_sha256(CHALLENGED.model_copy(update={"gate": other})) != policy_sha256(CHALLENGED)
