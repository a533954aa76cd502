"""The page of whoever is asked to approve: the stored evidence, the policy's answer, the present champion."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import report_fixture as fixture

from components.config import dump
from components.config.canaries import RequiredCanary
from components.config.judgement import GateSettings
from components.config.promotion import Policy, PromotionPolicy, QuorumSettings
from components.errors import InputError
from components.files import write_json, write_text
from components.layout import Layout
from components.registry import Candidate, PromotionRecord
from components.registry.directory import DirectoryStore
from components.types import GateCheck, Judgement
from flows.governance.checkpoint import CheckpointView
from flows.governance.comparison import comparison_key
from flows.promoting import report as page
from flows.serving.pages import EVIDENCE

CHAMPION = "b" * 64
GAIN = {"mean": 0.031, "low": 0.004, "high": 0.058, "confidence": 0.95, "detectable": 0.03}
POLICY = Judgement(
    "inconclusive", (GateCheck("lineage", "inconclusive", "a snapshot", "commit it"),), "c" * 64, "d" * 64, 0
)


@pytest.fixture(autouse=True)
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take most of the time, and are tested with the report."""
    monkeypatch.setattr("components.report.page.draw_all", lambda *_: [])


@pytest.fixture
def context(tmp_path: Path) -> Any:
    policy = SimpleNamespace(sha256=POLICY.policy_sha256, settings=PromotionPolicy())
    return SimpleNamespace(
        store=DirectoryStore(tmp_path / "registry"), project=tmp_path, policy=policy, config="configs/demo.yaml"
    )


def propose(context: Any, digest: str, *overrides: str) -> Candidate:
    """A candidate with the evidence of a healthy run, as `propose` records it."""
    layout = fixture.healthy(context.project / digest[:4])
    write_text(layout.params, dump(fixture.settings("train.steps=60", *overrides)))
    write_json(layout.lineage, {"commit": "c0ffee", "committed": True, "inputs": [], "run": "demo-1"})
    gate = {"result": "pass", "checks": [], "checkpoint_sha256": digest, "policy_sha256": "a" * 64}
    stored = context.store.put_tree(layout.root)
    candidate = Candidate(digest, gate, {"run": "demo-1", "started_by": ["ann"]}, evidence=stored)
    context.store.compare_and_swap(candidate.key, candidate.to_bytes(), None)
    return candidate


def champion_is(monkeypatch: pytest.MonkeyPatch, digest: str | None) -> None:
    found = None if digest is None else SimpleNamespace(digest=digest, record=1)
    monkeypatch.setattr(page, "champion", lambda store: found)


def keep_comparison(context: Any, candidate: Candidate, evidence: str | None) -> None:
    """As `flows.governance.comparison` keeps one."""
    figures = {"candidate": fixture.side(0.884), "champion": fixture.side(0.85)}
    kept = {"gain": GAIN, "greedy_gain": GAIN, "figures": figures, "prompts": 512, "words": [], "evidence": evidence}
    context.store.put_if_absent(comparison_key(candidate, CHAMPION), json.dumps(kept).encode())


def drawn(context: Any, candidate: Candidate) -> str:
    return page.report(context, candidate, POLICY).replace("\u00a0", " ")


def test_it_says_what_the_policy_answers_and_who_claims_to_have_started_the_run(context: Any, monkeypatch: Any) -> None:
    candidate = propose(context, fixture.DIGEST)
    champion_is(monkeypatch, None)
    shown = drawn(context, candidate)
    for expected in (
        "Gate inconclusive: a person has to judge",
        "no champion yet",
        "Would change it: commit it",
        "a claim",
    ):
        assert expected in shown
    assert shown == drawn(context, candidate)


def test_it_compares_with_the_present_champion_and_with_the_settings_of_its_run(context: Any, monkeypatch: Any) -> None:
    candidate = propose(context, fixture.DIGEST)
    propose(context, CHAMPION, "learner.lr=0.0007")
    champion_is(monkeypatch, CHAMPION)
    keep_comparison(context, candidate, candidate.evidence)
    shown = drawn(context, candidate)
    assert "pass@1 85.0 % → 88.4 % on the same prompts" in shown
    assert "It is better than the champion&#39;s 85.0 % (+3.1 points, +0.4 to +5.8)." in shown
    assert '<td class="small">0.0007</td>' in shown


def test_a_comparison_on_other_evidence_is_not_shown(context: Any, monkeypatch: Any) -> None:
    candidate = propose(context, fixture.DIGEST)
    champion_is(monkeypatch, CHAMPION)
    keep_comparison(context, candidate, "e" * 64)
    assert "there is a champion, and nothing compares them" in drawn(context, candidate)


def test_the_champion_is_not_compared_with_itself(context: Any, monkeypatch: Any) -> None:
    candidate = propose(context, fixture.DIGEST)
    champion_is(monkeypatch, candidate.digest)
    assert "Over the champion" not in drawn(context, candidate)


def decided(candidate: Candidate, outcome: Any, *names: str, previous: str | None = None) -> CheckpointView:
    """A candidate that was decided upon, with the champion of that time, by a gate that passed."""
    gate = {"result": "pass", "checks": [{"name": "lineage", "result": "pass", "evidence": "as then", "how": ""}]}
    record = PromotionRecord(
        7, "reject" if outcome == "rejected" else "promote", outcome, candidate.digest, previous, 6,
        candidate.evidence, gate, "c" * 64, (), "ann <b>", "it reads well", "2026-11-20T10:30:00Z", "d" * 64,
    )  # fmt: skip
    return CheckpointView(
        candidate, names, "pass", gate["checks"], record, champion=record if "champion" in names else None
    )


def test_of_the_champion_it_says_how_it_was_decided_and_how_to_go_back(context: Any) -> None:
    candidate = propose(context, fixture.DIGEST)
    propose(context, CHAMPION)
    keep_comparison(context, candidate, candidate.evidence)
    shown = page.report_of(context, decided(candidate, "promoted", "champion", previous=CHAMPION)).replace(
        "\u00a0", " "
    )
    for expected in (
        "<h1>Promoted by ann &lt;b&gt;</h1>",
        "Reason given: “it reads well”.",
        "It is better than the champion&#39;s 85.0 %",
        "It is the present champion.",
        "Record 7, 2026-11-20 10:30 UTC",
        "evenkeel rollback --by YOUR-NAME",
        "as then",
    ):
        assert expected in shown
    assert "evenkeel approve" not in shown


def test_of_a_rejected_one_nothing_is_left_to_do(context: Any) -> None:
    shown = page.report_of(context, decided(propose(context, fixture.DIGEST), "rejected"))
    assert "Rejected by ann" in shown and "it was the first" in shown
    assert not any(f"evenkeel {command}" in shown for command in ("approve", "reject", "rollback"))


def test_of_a_former_champion_it_says_how_to_make_it_the_champion_again(context: Any) -> None:
    shown = page.report_of(context, decided(propose(context, fixture.DIGEST), "promoted"))
    assert f"evenkeel rollback --to {fixture.DIGEST[:12]}" in shown and "present champion." not in shown


def test_probe_sets_that_the_policy_asks_for_are_shown_as_long_as_it_is_the_one_that_was_gone_by(
    context: Any, monkeypatch: Any
) -> None:
    candidate, said = propose(context, fixture.DIGEST), "the policy asks for this probe set"
    champion_is(monkeypatch, None)
    context.policy.settings = PromotionPolicy(gate=GateSettings(canaries={"bbq": RequiredCanary()}))
    assert said in drawn(context, candidate)
    assert said in page.report_of(context, decided(candidate, "rejected"))
    context.policy.sha256 = "f" * 64
    shown = page.report_of(context, decided(candidate, "rejected"))
    assert said not in shown and "what the policy of that time required is not known any more" in shown


def test_what_an_earlier_policy_of_the_project_asked_for_is_known(context: Any, monkeypatch: Any) -> None:
    candidate = propose(context, fixture.DIGEST)
    context.policy.sha256 = "f" * 64
    earlier = PromotionPolicy(gate=GateSettings(canaries={"bbq": RequiredCanary()}))
    monkeypatch.setattr(page, "known_policies", lambda context, wanted: {one: Policy(earlier, {}) for one in wanted})
    shown = page.report_of(context, decided(candidate, "rejected"))
    assert "the policy asks for this probe set" in shown and "not known any more" not in shown


def test_a_champion_that_cannot_be_shown_to_be_approved_is_said_to_be_one(context: Any, monkeypatch: Any) -> None:
    found = decided(propose(context, fixture.DIGEST), "promoted", "champion")
    assert "cannot be shown" not in page.report_of(context, found)
    monkeypatch.setattr(page, "problems", lambda project, history: {7: "0 of 1 approvals"})
    assert "It cannot be shown to be approved: 0 of 1 approvals." in page.report_of(context, found)


def test_a_command_on_the_page_takes_a_key_where_the_policy_asks_for_a_signature(
    context: Any, monkeypatch: Any
) -> None:
    candidate, signed = propose(context, fixture.DIGEST), QuorumSettings(signed=True)
    champion_is(monkeypatch, None)
    assert "--key YOUR-KEY" not in drawn(context, candidate)
    context.policy.settings = PromotionPolicy().model_copy(update={"promote": signed, "rollback": signed})
    shown = drawn(context, candidate)
    typed = [line.partition("</code>")[0] for line in shown.split("evenkeel ") if "--by YOUR-NAME" in line]
    assert len(typed) >= 3 and all(line.endswith(" --key YOUR-KEY") for line in typed)


def test_without_evidence_there_is_no_page(context: Any, monkeypatch: Any) -> None:
    candidate = propose(context, fixture.DIGEST)
    bare = Candidate(candidate.digest, candidate.gate, candidate.run, schema=1)
    with pytest.raises(InputError, match="has no evidence"):
        page.report(context, bare, POLICY)


def test_the_page_takes_the_place_of_the_runs_own_among_those_that_are_served(context: Any) -> None:
    candidate = propose(context, fixture.DIGEST)
    found = page.pages(context.project, context.store, candidate.evidence, "what is known now")
    served = context.project / EVIDENCE / str(candidate.evidence)
    assert Layout(served).report.read_text(encoding="utf-8") == "what is known now"
    assert {"Report", "Data validation", "Verifier audit"} == set(found)
