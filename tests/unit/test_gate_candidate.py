"""A stored candidate judged again by the project's policy: what it must show, and that what is missing fails."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from passing_run import FEW, layout, whole
from safetensors.numpy import save_file

from components.config import load
from components.config.judgement import RuleSettings
from components.errors import InputError, NoCandidate
from components.files import read_json, sha256_tree, write_json, write_text
from components.gate.bundle import OMITTED, gather
from components.gate.candidate import comparison_of, judge_candidate, recorded_comparison
from components.gate.checks import CHECKS, OF_A_CANDIDATE
from components.gate.checks.evaluation import TO_BE_COMPARED
from components.layout import Layout
from components.registry import Candidate
from components.registry.attestations import attest, of_evidence
from components.registry.directory import DirectoryStore
from components.registry.promotion import check_judgement
from components.stages.gate import run as run_gate
from components.types import Judgement
from tests.proposals import key_in, policy_of, propose_run, write_lock, write_run
from tests.tiers import slow_but

Judge = Callable[..., Judgement]
COMPARED = {"mean": 0.1, "low": 0.06, "high": 0.14, "n": 512, "unscorable_share": 0.0}


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "registry")


__all__ = ["layout", "whole"]


@pytest.fixture
def candidate(store: DirectoryStore, layout: Layout, tmp_path: Path) -> Candidate:
    """Of the run in ``layout``."""
    return propose_run(store, layout, key_in(tmp_path))


@pytest.fixture
def judged(store: DirectoryStore, tmp_path: Path) -> Judge:
    """A candidate judged by a policy with these rules and settings."""

    def judge(candidate: Candidate, comparison: Any = None, rules: Any = FEW, **policy: Any) -> Judgement:
        if candidate.evidence is not None and store.has_tree(candidate.evidence):
            attest(store, of_evidence(candidate.digest, candidate.evidence), key_in(tmp_path))
        return judge_candidate(
            store, candidate, replace(policy_of(key_in(tmp_path), **policy), rules=rules), comparison
        )

    return judge


def failed(judgement: Judgement) -> dict[str, str]:
    """What did not pass, each with its evidence; every one of them says what would change it."""
    assert all(check.how for check in judgement.checks if check.result != "pass")
    return {check.name: check.evidence for check in judgement.checks if check.result != "pass"}


def test_a_healthy_run_passes_every_check(judged: Judge, candidate: Candidate, tmp_path: Path) -> None:
    found = judged(candidate)
    assert (found.result, failed(found)) == ("pass", {})
    assert [check.name for check in found.checks] == [*CHECKS, *OF_A_CANDIDATE]
    assert (found.evidence, found.base) == (candidate.evidence, 0)
    assert found.policy_sha256 == replace(policy_of(key_in(tmp_path)), rules=FEW).sha256


# --- the policy, not the run


def test_the_limits_are_those_of_the_policy(judged: Judge, candidate: Candidate, tmp_path: Path) -> None:
    strict = judged(candidate, gate={"min_gain": 0.36})
    assert failed(strict) == {
        "held-out gain": "pass@1 +40.0 points, 95 % interval +35.0 to +45.0; the lower end must exceed +36.0"
    }
    assert strict.policy_sha256 != policy_of(key_in(tmp_path)).sha256


def test_a_run_that_allowed_itself_more_is_held_to_the_limits_of_the_policy(
    store: DirectoryStore, layout: Layout, judged: Judge, tmp_path: Path
) -> None:
    settings = yaml.safe_load(layout.params.read_text())
    settings["data"]["validation"]["max_quarantined"] = settings["gate"]["max_quarantined"] = 1.0
    settings["audit"]["max_false_positive"] = settings["gate"]["max_false_positive"] = 1.0
    write_text(layout.params, yaml.safe_dump(settings))
    write_json(layout.validation, {**read_json(layout.validation), "quarantined": 97})
    write_json(layout.audit, {**read_json(layout.audit), "false_positive": {"rate": 0.9, "high": 0.95}})
    run_gate(load(layout.params), layout)
    write_lock(layout)
    candidate = propose_run(store, layout, key_in(tmp_path))
    assert candidate.gate["result"] == "pass"
    assert set(failed(judged(candidate))) == {"data validated", "verifier audited"}
    lenient = {"max_quarantined": 1.0, "max_false_positive": 1.0}
    assert judged(candidate, gate=lenient).result == "pass"


def test_health_is_judged_by_the_rules_of_the_policy_too(judged: Judge, candidate: Candidate) -> None:
    rules = {"strict": RuleSettings(when="entropy < 2", level="stop", why="too low")}
    found = failed(judged(candidate, rules=rules))
    assert list(found) == ["health by policy"] and "strict says stop at step 0" in found["health by policy"]


def test_a_rule_of_the_policy_whose_signal_was_never_recorded_fails(judged: Judge, candidate: Candidate) -> None:
    rules = {"other": RuleSettings(when="canary_drop > 2", level="stop", why="unknown")}
    assert failed(judged(candidate, rules=rules)) == {
        "health by policy": "could not be judged for want of signals: other (canary_drop)"
    }


def test_a_policy_without_rules_leaves_health_to_a_person(judged: Judge, candidate: Candidate) -> None:
    found = judged(candidate, rules={})
    assert (found.result, list(failed(found))) == ("inconclusive", ["health by policy"])


# --- the present champion


@pytest.fixture
def champion(store: DirectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A champion that stands on record 3."""
    digest = "c" * 64

    class History:
        champion = type("ChampionEntry", (), {"digest": digest, "record": 3})()
        base = 3

    monkeypatch.setattr("components.registry.read_history", lambda store: History())
    return digest


def test_a_candidate_is_compared_with_the_present_champion(judged: Judge, candidate: Candidate, champion: str) -> None:
    comparison = {**COMPARED, "candidate": candidate.digest, "champion": champion}
    found = judged(candidate, comparison)
    assert (found.result, found.base) == ("pass", 3)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (None, "it was not compared with the present champion cccccccccccc"),
        ({"champion": "d" * 64}, "with dddddddddddd, and this is"),
        ({"candidate": "d" * 64}, "the comparison is of dddddddddddd with cccccccccccc"),
        ({"low": None}, "there is no low"),
        ({"n": None}, "there is no n"),
        ({"low": float("nan")}, "low is not a finite number: nan"),
        ({"mean": float("inf")}, "mean is not a finite number"),
        ({"unscorable_share": None}, "there is no unscorable_share"),
        ({"unscorable_share": -0.5}, "unscorable_share cannot be a share: -0.5"),
        ({"mean": -1.0}, "comparison cannot be a difference of two shares"),
        ({"unscorable_share": 0.5}, "50.0% of the champion's completions unscorable"),
        ({"low": -0.06}, "95 % interval -6.0 to +14.0; the lower end must exceed -5.0"),
    ],
)
def test_a_comparison_that_is_missing_of_others_or_not_good_enough_fails(
    judged: Judge, candidate: Candidate, champion: str, change: Any, problem: str
) -> None:
    whole = {**COMPARED, "candidate": candidate.digest, "champion": champion}
    found = judged(candidate, None if change is None else whole | change)
    assert list(failed(found)) == ["gain over present champion"]
    assert problem in failed(found)["gain over present champion"]


@pytest.mark.parametrize(
    ("comparison", "later"),
    [({"pending": True}, True), ({"problem": "the evidence is gone"}, False), ({"low": None, "mean": None}, False)],
)
def test_only_a_comparison_that_is_yet_to_be_made_may_still_change_the_answer(
    judged: Judge, candidate: Candidate, champion: str, comparison: dict[str, Any], later: bool
) -> None:
    whole = {**COMPARED, "candidate": candidate.digest, "champion": champion, **comparison}
    (check,) = (one for one in judged(candidate, whole).checks if one.result == "fail")
    assert (check.name, check.how == TO_BE_COMPARED) == ("gain over present champion", later)


def test_a_comparison_on_too_few_prompts_is_left_to_a_person_as_the_policy_says(
    judged: Judge, candidate: Candidate, champion: str
) -> None:
    comparison = {**COMPARED, "candidate": candidate.digest, "champion": champion, "n": 30}
    assert judged(candidate, comparison).result == "inconclusive"
    assert judged(candidate, comparison, gate={"min_prompts": 30}).result == "pass"
    worse = {**comparison, "unscorable_share": 0.5}
    assert judged(candidate, worse).result == "fail"


def test_the_run_may_have_made_the_comparison_itself(
    store: DirectoryStore, judged: Judge, tmp_path: Path, champion: str
) -> None:
    candidate = propose_run(store, write_run(tmp_path / "run", champion=champion, rules=FEW), key_in(tmp_path))
    comparison = recorded_comparison(store, candidate, champion)
    assert comparison is not None
    assert (comparison["candidate"], comparison["champion"]) == (candidate.digest, champion)
    assert judged(candidate, comparison).result == "pass"
    assert recorded_comparison(store, candidate, "d" * 64) is None


def test_figures_without_a_champion_make_no_comparison_that_passes() -> None:
    assert comparison_of({}, "a" * 64, "b" * 64)["unscorable_share"] is None


# --- the evidence


def test_a_candidate_of_an_earlier_version_has_no_evidence_and_fails(judged: Judge, candidate: Candidate) -> None:
    old = Candidate(candidate.digest, candidate.gate, candidate.run, schema=1)
    found = judged(old)
    why = "omitted: the candidate was recorded without its evidence, by an earlier version"
    assert failed(found) == {"evidence": why}
    assert [check.name for check in found.checks] == ["checkpoint format", "evidence", "checkpoint signature"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda tree: (tree / "out/evaluation.json").write_text("{}"),
        lambda tree: (tree / "out/evaluation.json").unlink(),
        lambda tree: (tree / "out/more.json").write_text("{}"),
        lambda tree: (tree / "params.yaml").rename(tree / "other.yaml"),
    ],
)
def test_evidence_that_was_changed_after_it_was_stored_fails(
    store: DirectoryStore, judged: Judge, candidate: Candidate, damage: Callable[[Path], object]
) -> None:
    assert candidate.evidence is not None
    damage(store.tree(candidate.evidence))
    found = judged(candidate)
    assert found.result == "fail"
    assert "no longer has the digest" in failed(found)["evidence"]


def test_a_record_whose_gate_is_not_the_one_in_the_evidence_fails(judged: Judge, candidate: Candidate) -> None:
    better = replace(candidate, gate={**candidate.gate, "checks": []})
    assert "is not the one in its evidence" in failed(judged(better))["evidence"]


@pytest.mark.parametrize("name", ["out/evaluation.json", "out/train.json", "out/train/records.jsonl", "out/gate.json"])
def test_evidence_that_was_never_there_fails(store: DirectoryStore, layout: Layout, judged: Judge, name: str) -> None:
    gate = read_json(layout.gate)
    (layout.root / name).unlink()
    write_json(layout.gate, gate) if name != "out/gate.json" else None
    evidence = layout.root / "evidence"
    gather(layout, {}, evidence)
    candidate = Candidate("a" * 64, gate, {}, evidence=store.put_tree(evidence))
    assert judged(candidate).result == "fail"


@pytest.mark.parametrize("value", slow_but([None, math.nan, math.inf, -math.inf], None, math.nan))
@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("validation.quarantined", "data validated"),
        ("audit.false_positive.high", "verifier audited"),
        ("audit.false_negative.rate", "verifier audited"),
        ("train_metrics.steps", "training completed"),
        ("evaluation.gain.mean", "held-out gain"),
        ("evaluation.gain.low", "held-out gain"),
        ("evaluation.gain.high", "held-out gain"),
        ("evaluation.trained.truncated_share", "truncated"),
        ("evaluation.sft.unscorable_share", "unscorable"),
        ("evaluation.contamination.worst_share", "contaminated"),
    ],
)
def test_a_figure_that_is_missing_or_no_number_fails_though_the_run_said_pass(
    store: DirectoryStore, layout: Layout, judged: Judge, tmp_path: Path, figure: str, name: str, value: float | None
) -> None:
    part, *keys = figure.split(".")
    path: Path = getattr(layout, part)
    figures = node = read_json(path)
    for key in keys[:-1]:
        node = node[key]
    node[keys[-1]] = value
    path.write_text(json.dumps(figures))
    write_lock(layout)
    candidate = propose_run(store, layout, key_in(tmp_path))
    found = judged(candidate)
    assert ".".join(keys) in failed(found)[name]
    with pytest.raises(NoCandidate, match="the gate failed"):
        check_judgement(found, candidate, replace(policy_of(key_in(tmp_path)), rules=FEW))


def test_settings_that_cannot_be_read_fail(
    store: DirectoryStore, layout: Layout, judged: Judge, tmp_path: Path
) -> None:
    write_text(layout.params, "no_such_setting: 1\n")
    found = judged(propose_run(store, layout, key_in(tmp_path)))
    assert "no_such_setting" in failed(found)["evidence"]


LOCK, PARAMS = ("dvc.lock", "lineage"), ("params.yaml", "evidence")
DEEP, LONG = "a: " + "[" * 60000, "a: " + "1" * 5000


@pytest.mark.parametrize(
    ("name", "check", "text"),
    [(*LOCK, DEEP), (*LOCK, LONG), (*LOCK, "a: 2026-13-45"), (*PARAMS, DEEP), (*PARAMS, LONG), (*PARAMS, "a: 010")],
    ids=["deep lock", "long lock", "no day in the lock", "deep settings", "long settings", "zeros in settings"],
)
def test_settings_or_a_lock_that_no_reader_can_parse_fail_their_check_without_an_error(
    store: DirectoryStore, layout: Layout, judged: Judge, candidate: Candidate, name: str, check: str, text: str
) -> None:
    evidence = layout.root / "evidence"
    (evidence / name).write_text(text)
    found = judged(replace(candidate, evidence=store.put_tree(evidence)))
    assert "YAML" in failed(found)[check]


def test_what_is_too_large_is_left_out_by_name_and_its_check_fails(
    store: DirectoryStore, layout: Layout, judged: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.gate.bundle.LARGEST", layout.records.stat().st_size - 1)
    candidate = propose_run(store, layout, key_in(tmp_path))
    assert candidate.evidence is not None
    omitted = read_json(store.tree(candidate.evidence) / OMITTED)
    assert list(omitted) == ["out/train/records.jsonl"]
    found = failed(judged(candidate))
    assert set(found) == {"training health", "training completed", "health by policy"}
    assert "records: left out of the evidence, too large" in found["training health"]


def test_the_same_run_gives_the_same_evidence_and_no_checkpoint_or_training_data(
    layout: Layout, tmp_path: Path
) -> None:
    write_text(layout.split("train"), "secret")
    write_text(layout.pairs, "{}")
    for name in ("one", "two"):
        gather(layout, {"run": "x"}, tmp_path / name)
    assert sha256_tree(tmp_path / "one") == sha256_tree(tmp_path / "two")
    kept = {path.relative_to(tmp_path / "one").as_posix() for path in (tmp_path / "one").rglob("*") if path.is_file()}
    assert {"params.yaml", "dvc.lock", "lineage.json", "out/data/test.jsonl", "out/train/records.jsonl"} <= kept
    assert not [name for name in kept if "checkpoint" in name or "pairs" in name or name == "out/data/train.jsonl"]


def test_a_link_among_what_a_run_left_is_refused(layout: Layout, tmp_path: Path) -> None:
    (layout.out / "secret.json").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="a link"):
        gather(layout, {}, tmp_path / "evidence")


# --- the checkpoint


def test_an_unsigned_checkpoint_fails(store: DirectoryStore, layout: Layout, judged: Judge) -> None:
    found = judged(propose_run(store, layout, None))
    assert list(failed(found)) == ["checkpoint signature"]
    assert "there is none" in failed(found)["checkpoint signature"]


def test_a_checkpoint_that_was_changed_after_it_was_stored_fails(
    store: DirectoryStore, judged: Judge, candidate: Candidate
) -> None:
    save_file({"weight": np.ones((2, 2), dtype=np.float32)}, store.tree(candidate.digest) / "model.safetensors")
    found = failed(judged(candidate))
    assert "no longer has the digest" in found["checkpoint format"]
