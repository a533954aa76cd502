"""Policies by their digests, out of a project's own history."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from components.config.promotion import FILE, load_policy
from components.errors import InputError
from flows.governance.policies import check_recorded, policies_of
from flows.host.git import IDENTITY, git
from tests.code_graph import ROOT
from tests.proposals import commit


@pytest.fixture
def project(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    shutil.copytree(ROOT / "configs/health", tmp_path / "configs/health")
    return tmp_path


def write(project: Path, text: str) -> str:
    """The digest of a policy that is in the folder now."""
    (project / FILE).parent.mkdir(exist_ok=True)
    (project / FILE).write_text(text)
    return load_policy(project).sha256


def committed(project: Path, text: str) -> str:
    """The digest of a policy that is in the last commit too."""
    digest = write(project, text)
    commit(project)
    return digest


def test_every_policy_that_was_committed_is_found_again_by_its_digest(project: Path) -> None:
    digests = []
    for days in (3, 4, 5):
        digests.append(committed(project, f"valid_days: {days}\n"))
    digests.append(write(project, "valid_days: 6\n"))
    found = policies_of(project, digests)
    assert {digest: one.settings.valid_days for digest, one in found.items()} == dict(
        zip(digests[:3], (3, 4, 5), strict=True)
    )


def test_the_health_rules_are_those_of_then(project: Path) -> None:
    before = committed(project, "rules: default\n")
    rules = project / "configs/health/default.yaml"
    rules.write_text(rules.read_text() + "  mine: {when: last(entropy) < 0.01, why: it is low}\n")
    assert load_policy(project).sha256 != before
    commit(project)
    assert set(policies_of(project, [before, load_policy(project).sha256])) == {before, load_policy(project).sha256}


def test_one_from_a_branch_that_was_merged_is_known_though_the_other_side_won(project: Path) -> None:
    committed(project, "valid_days: 3\n")
    git(project, "checkout", "--quiet", "-b", "side")
    side = committed(project, "valid_days: 4\n")
    git(project, "checkout", "--quiet", "main")
    git(project, "merge", "--quiet", "--strategy=ours", "--no-ff", "--message=merge", "side", extra=IDENTITY)
    assert load_policy(project).settings.valid_days == 3
    assert set(policies_of(project, [side])) == {side}


@pytest.mark.parametrize("content", [b"unknown: 1\n", "version: 1  # Größe\n".encode("latin-1"), b"\xff\xfe"])
def test_one_that_cannot_be_read_hides_none_of_the_others(project: Path, content: bytes) -> None:
    before = committed(project, "valid_days: 3\n")
    (project / FILE).write_bytes(content)
    commit(project)
    after = committed(project, "valid_days: 4\n")
    assert set(policies_of(project, [before, after])) == {before, after}


def test_names_that_are_no_ascii_and_settings_of_git_change_nothing(project: Path) -> None:
    git(project, "config", "log.showSignature", "true")
    rules = project / "configs/health/größe.yaml"
    rules.write_text((project / "configs/health/default.yaml").read_text())
    committed(project, "rules: größe\n")
    check_recorded(project, load_policy(project))


def test_a_policy_of_before_decides_nothing_now(project: Path) -> None:
    committed(project, "valid_days: 3\n")
    committed(project, "promote: {approvals: 2}\n")
    write(project, "valid_days: 3\n")
    with pytest.raises(InputError, match="the promotion policy is not committed"):
        check_recorded(project, load_policy(project))


def test_nothing_is_decided_by_a_policy_that_is_not_committed(project: Path) -> None:
    write(project, "valid_days: 3\n")
    for text in ("valid_days: 3\n", "valid_days: 4\n"):
        write(project, text)
        with pytest.raises(InputError, match="not committed") as caught:
            check_recorded(project, load_policy(project))
        assert "git add configs/promotion configs/health && git commit" in str(caught.value)
        commit(project)
        check_recorded(project, load_policy(project))


def test_a_project_without_history_has_had_none(project: Path) -> None:
    assert policies_of(project, [write(project, "valid_days: 3\n")]) == {}
