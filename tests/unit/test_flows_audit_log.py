"""`evenkeel audit`, `evenkeel gate` and `evenkeel rules`: what they print and how they end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from components.config import Settings, dump
from components.config.judgement import HealthSettings, RuleSettings
from components.errors import InputError
from components.files import write_json, write_jsonl
from components.health.monitor import replay
from components.health.rulebook import DEFAULT_RULES, LOG_RULES, load_rules
from components.layout import Layout
from components.types import StepRecord
from flows.cli import app
from flows.judging.audit_log import audit_log
from flows.judging.rejudge import find_run, rejudge_run
from tests.unit.flows_project import command

RULES = {
    "low": {"when": "entropy < 0.5", "level": "warn", "why": "low entropy", "streak": 2},
    "broken": {"when": "nonfinite > 0", "level": "stop", "why": "broken numbers"},
    "blind": {"when": "accuracy < 0.1", "level": "stop", "why": "no accuracy"},
    "long": {"when": "slope(entropy, 100) < 0", "level": "stop", "why": "entropy falls"},
}


def rules(folder: Path, tree: object = RULES) -> Path:
    path = folder / "rules.yaml"
    path.write_text(tree if isinstance(tree, str) else yaml.safe_dump({"rules": tree}, sort_keys=False))
    return path


def log(folder: Path, *entropies: float | None) -> Path:
    """A log of TRL with these entropies, one a step."""
    rows = [
        {"step": n, "entropy": value, "completions/mean_length": 9.0, "kl": 0.1} for n, value in enumerate(entropies, 1)
    ]
    return written(folder, rows)


def written(folder: Path, rows: Iterable[dict[str, Any]]) -> Path:
    write_jsonl(folder / "log.jsonl", rows)
    return folder / "log.jsonl"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


HEALTHY, LOW, BROKEN = (1.0, 1.0, 1.0), (1.0, 0.25, 0.125), (1.0, None, 1.0)


@pytest.mark.parametrize(("entropies", "code"), [(HEALTHY, 0), (LOW, 0), (BROKEN, 3)], ids=["silent", "warned", "stop"])
def test_the_exit_code_says_whether_a_grave_rule_spoke(tmp_path, entropies, code):
    ended, output = run("audit", log(tmp_path, *entropies), "--rules", rules(tmp_path))
    assert (ended, "no rule fired" in output) == (code, entropies == HEALTHY)


def test_it_prints_what_was_read_the_verdicts_with_evidence_and_who_could_not_judge(tmp_path):
    _, output = run("audit", log(tmp_path, *LOW), "--rules", rules(tmp_path))
    for expected in (
        "TRL GRPOTrainer (0.12 to 1.16), 3 steps from 1 to 3",
        "low entropy [entropy < 0.5, 2 steps in a row]",
        "entropy 1, 0.25, 0.125",
        "could judge 2 rules: low, broken",
        "long (needs 100)",
        "blind (no accuracy)",
    ):
        assert expected in " ".join(output.split()), output


def test_json_holds_the_same_for_a_machine(tmp_path):
    code, output = run("audit", log(tmp_path, *LOW), "--rules", rules(tmp_path), "--json")
    found = json.loads(output)
    assert (code, found["exit_code"], found["worst"], found["format"]) == (0, 0, "warn", "trl")
    assert (found["steps"], found["first_step"], found["last_step"]) == (3, 1, 3)
    assert [(v["rule"], v["step"], v["evidence"]) for v in found["verdicts"]] == [("low", 3, {"entropy": list(LOW)})]
    assert found["judged"] == ["low", "broken"]
    assert found["unjudged"] == {"blind": ["accuracy"]}
    assert found["too_short"] == {"long": 100}


def test_json_has_null_for_what_was_not_finite(tmp_path):
    code, output = run("audit", log(tmp_path, *BROKEN), "--rules", rules(tmp_path), "--json")
    found = json.loads(output, parse_constant=pytest.fail)
    assert code == found["exit_code"] == 3
    assert found["verdicts"][0]["evidence"]["nonfinite"] == [0.0, 1.0]
    assert found["remarks"] == ["entropy is NaN or infinite, first in step 2, in 1 in all"]


def test_a_rule_that_spoke_of_a_broken_number_is_not_among_those_that_could_not_judge(tmp_path):
    both = {"both": {"when": "entropy < 0.5 or accuracy < 0.1", "level": "warn", "why": "either"}}
    found = audit_log(log(tmp_path, *BROKEN), "auto", None, rules(tmp_path, both))
    assert [verdict.rule for verdict in found.verdicts] == ["both"]
    assert (found.judged, found.unjudged) == (["both"], {})


def test_an_audit_of_our_own_records_repeats_the_live_verdicts(tmp_path):
    records = [StepRecord(step, {"entropy": 0.25, "nonfinite": float(step == 3)}) for step in range(5)]
    write_jsonl(tmp_path / "records.jsonl", [record.to_dict() for record in records])
    book = load_rules(rules(tmp_path))
    found = audit_log(tmp_path / "records.jsonl", "auto", None, rules(tmp_path))
    assert found.log.format == "jsonl"
    assert found.verdicts == replay(book, records) != []


def test_an_audit_of_our_own_records_goes_back_where_the_run_was_rolled_back(tmp_path):
    spike = {3: {"rolled_back_to": 2}}
    records = [StepRecord(step, {"entropy": 0.1 if step == 3 else 1.0}, spike.get(step, {})) for step in range(6)]
    write_jsonl(tmp_path / "records.jsonl", [record.to_dict() for record in records])
    falls = {"falls": {"when": "entropy < 0.5 * max(entropy)", "level": "warn", "why": "falls", "cooldown": 1},
             "least": {"when": "min(entropy) < 0.5", "level": "warn", "why": "least", "cooldown": 1}}  # fmt: skip
    book = load_rules(rules(tmp_path, falls))
    found = audit_log(tmp_path / "records.jsonl", "auto", None, rules(tmp_path, falls))
    assert [(verdict.rule, verdict.step) for verdict in found.verdicts] == [("falls", 3), ("least", 3)]
    assert found.verdicts == replay(book, records)


ROW = {"reward": 0.5, "kl_ref": 0.1, "entropy": 1.0, "loss": 0.1, "grad_norm": 0.3}


@pytest.mark.parametrize(
    ("row", "shipped"),
    [
        ({"reward": 0.5, "kl": 0.1, "completion_length": 9.0, "loss": 0.1}, LOG_RULES),
        ({"signals": ROW}, DEFAULT_RULES),
        ({"signals": {**ROW, "reward_fall": 0.0, "reward_lost": 0.0}}, LOG_RULES),  # what the callback writes
        (ROW, LOG_RULES),
    ],
    ids=["another trainer's", "ours", "the callback's", "another trainer's with names as ours"],
)
def test_the_rules_are_those_for_such_a_log_where_none_are_named(tmp_path, row, shipped):
    path = written(tmp_path, ({"step": n, **row} for n in range(3)))
    found = audit_log(path, "auto", None, None)
    assert {*found.judged, *found.unjudged, *found.too_short} == set(load_rules(shipped))


def test_a_collapse_is_found_where_another_trainer_has_names_as_ours(tmp_path):
    rows = ({"step": n, "loss": 0.1, "reward": 0.8 if n < 60 else 0.0, "entropy": 1.0} for n in range(120))
    code, output = run("audit", written(tmp_path, rows))
    assert (code, "reward_collapse  " in output) == (3, True), output


def test_a_collapse_of_a_reward_of_unknown_scale_ends_with_3_though_no_accuracy_is_mapped(tmp_path):
    rewards = [30.0 + step % 7 if step < 100 else 0.0 for step in range(200)]
    rows = ({"step": n, "reward": value, "rewards/mine": value, "kl": 0.1} for n, value in enumerate(rewards))
    code, output = run("audit", written(tmp_path, rows))
    assert (code, output.count("reward_collapse  ")) == (3, 1), output


def test_what_was_not_read_is_printed_with_a_mapping_to_paste(tmp_path):
    row = {"reward": 0.5, "kl": 0.1, "loss": 1.0, "rewards/correct/mean": 0.5, "agent/vf_loss": 0.2, "odd": 1}
    path = written(tmp_path, ({"step": n, **row} for n in range(3)))
    output = run("audit", path, "--rules", rules(tmp_path))[1]
    assert "not read, 2 names: agent/vf_loss, odd" in output
    assert "value_loss: agent/vf_loss" in output
    found = json.loads(run("audit", path, "--rules", rules(tmp_path), "--json")[1])
    assert found["unread"] == ["agent/vf_loss", "odd"] and "agent/vf_loss" in found["proposal"]


def test_bad_input_ends_with_2_and_one_message(tmp_path, monkeypatch, capsys):
    assert command(monkeypatch, "audit", tmp_path / "nothing") == 2
    assert command(monkeypatch, "audit", log(tmp_path, 1.0), "--format", "verl") == 2
    assert command(monkeypatch, "audit", log(tmp_path, 1.0), "--rules", rules(tmp_path, "rules: {a: 1}")) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "it looks like trl" in said


# --- evenkeel rules


def test_the_shipped_rules_compile_and_are_printed():
    code, output = run("rules")
    assert code == 0
    assert all(name in output for name in load_rules(DEFAULT_RULES))


def test_a_rule_is_printed_with_level_condition_streak_and_reason(tmp_path):
    code, output = run("rules", rules(tmp_path))
    assert code == 0
    assert "low warn entropy < 0.5 2 low entropy" in " ".join(output.split())
    assert "4 rules, all compile: 1 warn, 3 stop" in output


def test_what_a_rule_changes_and_when_it_does_not_is_printed_too(tmp_path):
    acting = {**RULES["low"], "level": "intervene", "unless": "reward > 0.9", "cooldown": 7, "optional": True,
              "action": [{"knob": "learner.lr", "times": 0.5}, {"knob": "learner.lr", "to": 0.001}]}  # fmt: skip
    code, output = run("rules", rules(tmp_path, {"acting": acting}))
    assert code == 0
    said = (
        "unless reward > 0.9",
        "again after 7 steps",
        "-> learner.lr times 0.5",
        "-> learner.lr to 0.001",
        "optional",
    )
    assert all(line in output for line in said)


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"low": {**RULES["low"], "level": "intervene", "action": [{"knob": "lr"}]}}, "lr"),
        ({"low": {**RULES["low"], "when": "entrpy < 0.5"}}, "did you mean entropy"),
        ({"low": {**RULES["low"], "when": "entropy <"}}, "cannot be read"),
        ({"low": {**RULES["low"], "levl": "warn"}}, "low.levl: unknown key; did you mean level?"),
        ({"low": {**RULES["low"], "streak": 0}}, "low.streak"),
        ({"low": {"when": "entropy < 1"}}, "low.why"),
        ({"low": 3}, "low"),
        ({}, "without a rule"),
        ("rules: []", "one mapping named `rules`"),
        ("other: {}", "one mapping named `rules`"),
        ("rules: {low: {}, low: {}}", "twice"),
    ],
)
def test_malformed_rules_end_with_2_and_name_what_is_wrong(tmp_path, monkeypatch, capsys, tree, said):
    assert command(monkeypatch, "rules", rules(tmp_path, tree)) == 2
    message = capsys.readouterr().err
    assert said in message
    assert "rules.yaml" in message


# --- evenkeel gate

BOOK = {"broken": RuleSettings(when="nonfinite > 0", level="stop", why="broken numbers")}


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A run with records of which no rule says anything; the rest of its evidence is missing."""
    layout = Layout(tmp_path / "runs" / "demo-1")
    records = [StepRecord(step, {"entropy": 0.25, "nonfinite": 0.0}) for step in range(3)]
    write_jsonl(layout.records, [record.to_dict() for record in records])
    write_jsonl(layout.train / "verdicts.jsonl", [])
    write_jsonl(layout.ledger, [])
    write_json(layout.gate, {"result": "pass", "checks": []})
    (layout.root / "params.yaml").write_text(dump(Settings(health=HealthSettings(rules=BOOK))))
    return layout.root


def health(root: Path, book: Path | None = None) -> tuple[str, str]:
    [check] = [check for check in rejudge_run(root, book).checks if check.name == "training health"]
    return check.result, check.evidence


def test_a_run_is_judged_by_the_rules_of_its_own_settings(finished):
    assert health(finished)[0] == "pass"


def test_a_run_is_judged_by_other_rules_on_request(finished, tmp_path):
    stop = {"low": {**RULES["low"], "level": "stop"}}
    result, evidence = health(finished, rules(tmp_path, stop))
    assert result == "fail"
    assert "low says stop at step 1" in evidence


def test_warnings_of_other_rules_are_no_contradiction_to_the_log(finished, tmp_path):
    result, evidence = health(finished, rules(tmp_path, {"low": RULES["low"]}))
    assert (result, evidence) == ("pass", "rules that fired: low (warn, step 1)")


@pytest.mark.parametrize(
    ("level", "undone", "result"),
    [("rollback", True, "pass"), ("rollback", False, "fail"), ("stop", True, "fail"), ("warn", False, "pass")],
)
def test_what_other_rules_would_have_undone_fails_unless_the_run_undid_it(finished, tmp_path, level, undone, result):
    notes = {1: {"rolled_back_to": 0}} if undone else {}
    records = [StepRecord(step, {"entropy": 0.25 if step == 1 else 1.0}, notes.get(step, {})) for step in range(3)]
    write_jsonl(Layout(finished).records, [record.to_dict() for record in records])
    spike = {"spike": {"when": "entropy < 0.5", "level": level, "why": "a spike"}}
    assert health(finished, rules(tmp_path, spike))[0] == result


def test_an_acting_rule_of_which_nothing_was_recorded_fails_unless_it_is_optional(finished, tmp_path):
    blind = {"when": "accuracy < 0.1", "level": "stop", "why": "no accuracy"}
    assert health(finished, rules(tmp_path, {"blind": blind})) == (
        "fail",
        "could not be judged for want of signals: blind (accuracy)",
    )
    assert health(finished, rules(tmp_path, {"blind": {**blind, "optional": True}}))[0] == "pass"
    assert health(finished, rules(tmp_path, {"blind": {**blind, "level": "warn"}}))[0] == "pass"


def test_missing_evidence_fails_with_3_and_the_earlier_result_is_shown_too(finished):
    code, output = run("gate", "--run", finished)
    assert code == 3
    assert "fail (the run said pass)" in output
    assert "file not found" in output


def test_nothing_is_written(finished):
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    run("gate", "--run", finished)
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before


def test_a_run_is_found_by_its_name_too(finished, monkeypatch):
    monkeypatch.chdir(finished.parents[1])
    assert find_run(Path("demo-1"), Path("unused")).resolve() == finished


def test_a_run_that_never_was_is_refused(tmp_path):
    with pytest.raises(InputError, match="no run has left anything here"):
        find_run(tmp_path / "nothing", Path("unused"))
