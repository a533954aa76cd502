"""The promotion policy: what may stand in it, and that every mistake is named without repeating what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.config.promotion import FILE, load_policy, read_policy
from components.errors import InputError
from components.registry.keys import new_key, public_pem, public_text
from tests.code_graph import ROOT
from tests.unit.deciding import approvers, key, policy

PRIVATE = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIH\n-----END PRIVATE KEY-----"


def project(path: Path, text: str) -> Path:
    (path / FILE).parent.mkdir(parents=True)
    (path / FILE).write_text(text)
    return path


def test_this_project_asks_for_one_unsigned_approval() -> None:
    settings = load_policy(ROOT).settings
    assert (settings.promote.approvals, settings.rollback.approvals) == (1, 1)
    assert not settings.promote.signed and not settings.approvers
    assert settings.own_approval("promote")


def test_an_empty_policy_is_the_default_and_holds_the_health_rules(tmp_path: Path) -> None:
    found = load_policy(project(tmp_path, ""))
    assert found.settings == load_policy(ROOT).settings
    assert found.rules


def test_a_policy_that_is_gone_weakens_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no promotion policy") as caught:
        load_policy(tmp_path)
    assert "git checkout -- configs/promotion/policy.yaml" in str(caught.value)


def test_the_digest_follows_the_content_and_not_how_it_is_written(tmp_path: Path) -> None:
    plain = load_policy(project(tmp_path / "a", "valid_days: 7\npromote: {approvals: 2}\n"))
    other = load_policy(project(tmp_path / "b", "# the same\npromote:\n  approvals: 2\nvalid_days: 7\n"))
    assert plain.sha256 == other.sha256


def rules(text: str) -> str:
    return f"rules:\n  low: {{when: last(entropy) < {text}, why: it is low}}\n"


@pytest.mark.parametrize(
    "change",
    [
        {"valid_days": 13},
        {"gate": {"min_gain": 0.1}},
        {"promote": {"approvals": 2}},
        {"rollback": {"signed": False, "own_approval": False}},
        {"approvers": approvers("ada")},
    ],
)
def test_the_digest_follows_every_part(change: dict[str, Any]) -> None:
    assert policy(**change).sha256 != policy().sha256


def test_the_digest_follows_the_health_rules_that_it_names(tmp_path: Path) -> None:
    root = project(tmp_path, "rules: mine")
    (tmp_path / "configs/health").mkdir()
    (tmp_path / "configs/health/mine.yaml").write_text(rules("0.1"))
    before = load_policy(root).sha256
    (tmp_path / "configs/health/mine.yaml").write_text(rules("0.2"))
    assert load_policy(root).sha256 != before


ADA, GRACE = approvers("ada")["ada"], approvers("grace")["grace"]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"aprovals": 1}, "aprovals: unknown setting"),
        ({"promote": {"approval": 1}}, "promote.approval: unknown setting"),
        ({"promote": {"approvals": 0}}, "promote.approvals"),
        ({"promote": {"approvals": 3}, "approvers": approvers("ada", "grace")}, "3 approvals are required and 2"),
        ({"rollback": {"approvals": 2}, "approvers": approvers("ada")}, "rollback: 2 approvals are required and 1"),
        ({"promote": {"signed": True}}, "signed approvals need approvers"),
        ({"approvers": {"ada": ADA, "grace": {"key": ADA["key"]}}}, "'ada' and 'grace' have one key"),
        ({"approvers": {"ada": ADA, "Ada ": GRACE}}, "'ada' and 'Ada ' go by one name"),
        ({"approvers": {"ada": ADA, "grace": {**GRACE, "also": ["ADA@example.org"]}}}, "go by one name"),
        ({"approvers": {"ada": {"key": "ssh-ed25519 AAAA"}}}, "approvers.ada.key: not an approver's key"),
        ({"approvers": {"ada": {"key": "ed25519:%%%"}}}, "not base64"),
        ({"approvers": {"ada": {"key": "ed25519:AAAA"}}}, "32 bytes"),
        ({"approvers": {"ada": {"key": PRIVATE}}}, "this is a private key"),
        ({"approvers": {"a\u202eda": ADA}}, "characters that do not show"),
        ({"approvers": {"ada\ufe0f": ADA}}, "characters that do not show: U+FE0F"),
        ({"approvers": {" ": ADA}}, "a name is empty"),
        ({"signers": {"ci": PRIVATE}}, "this is a private key"),
        ({"signers": {"ci": "hello"}}, "not a public key in PEM"),
        ({"signers": {"ci": public_pem(key("ada"))}}, "keys of an elliptic curve"),
        ({"valid_days": 0}, "valid_days"),
        ({"version": 2}, "version"),
        ({"gate": {"min_gian": 0}}, "gate.min_gian: unknown setting"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_fix(tree: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_policy(tree, "configs/promotion/policy.yaml")
    text = str(caught.value)
    assert said in text
    assert "where: configs/promotion/policy.yaml" in text and "fix:" in text
    assert "MC4CAQAwBQYDK2VwBCIEIH" not in text


def test_an_approver_listed_twice_in_the_file_is_refused(tmp_path: Path) -> None:
    line = public_text(key("ada"))
    text = f"approvers:\n  ada: {{key: {line!r}}}\n  ada: {{key: {line!r}}}\n"
    with pytest.raises(InputError, match="stands twice"):
        load_policy(project(tmp_path, text))


def test_the_key_of_a_checkpoint_signer_is_taken() -> None:
    assert policy(signers={"ci": public_pem(new_key("checkpoints"))}).settings.signers


def test_a_person_is_found_by_any_name() -> None:
    settings = policy(approvers={**approvers("grace"), "ada": {**ADA, "also": ["Ada@example.org", "L., Ada"]}}).settings
    assert settings.approver("L., ada") == "ada"  # as git may name the one who started a run
    assert [settings.approver(name) for name in ("ada", " ADA", "Ada@Example.org", "eve")] == [
        "ada",
        "ada",
        "ada",
        None,
    ]


@pytest.mark.parametrize(
    ("promote", "allowed"),
    [
        ({}, True),
        ({"signed": True}, False),
        ({"own_approval": False}, False),
        ({"signed": True, "own_approval": True}, True),
    ],
)
def test_own_approvals_count_only_where_nothing_is_signed_unless_said(promote: dict[str, Any], allowed: bool) -> None:
    settings = policy(approvers=approvers("ada"), promote=promote).settings
    assert settings.own_approval("promote") is allowed
    assert settings.own_approval("rollback")
    assert settings.own_approval("reject")
