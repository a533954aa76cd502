"""Decisions at the terminal: what is typed, what is printed, and what is in the registry then."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from components.config.promotion import FILE, load_policy
from components.errors import EvenkeelError
from components.evaluation import against
from components.files import sha256_tree
from components.registry import DirectoryStore, Terms, champion, read_approval, records, standing
from components.registry.approvals import approvals_of, signature_holds
from flows.cli import app
from flows.governance.registry import decision_on
from flows.host.git import git
from tests.code_graph import ROOT
from tests.fake_line.against import compare_with_champion
from tests.proposals import commit, propose_in

STARTER = "grace"
"""Who starts the runs of `tests.proposals`."""


@dataclass
class Terminal:
    """A project, and everything that was printed in it."""

    project: Path
    said: str = ""

    def type(self, *arguments: str, code: int = 0) -> str:
        """What a command prints; it must end with this exit code."""
        result = CliRunner().invoke(app, list(arguments))
        failed = result.exception if isinstance(result.exception, EvenkeelError) else None
        text = result.output + (str(failed) if failed else "")
        self.said += text
        assert (failed.exit_code if failed else result.exit_code) == code, text
        return text

    @property
    def store(self) -> DirectoryStore:
        return DirectoryStore(self.project / "registry")

    def policy(self, **settings: object) -> None:
        (self.project / FILE).write_text(yaml.safe_dump(settings), encoding="utf-8")
        commit(self.project)


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    project = tmp_path / "project"
    shutil.copytree(ROOT / "configs", project / "configs")
    shutil.copy(ROOT / "dvc.yaml", project)
    git(project, "init", "--quiet", "--initial-branch=main")
    commit(project)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Terminal(project)


def key_of(terminal: Terminal, name: str) -> tuple[Path, dict[str, object]]:
    """A new key in its default place, and what is printed for the policy."""
    printed = terminal.type("keys", "new", name)
    path = Path.home() / f".config/evenkeel/{name}.pem"
    assert str(path) in printed
    (entry,) = yaml.safe_load(printed[printed.index("approvers:") :])["approvers"].items()
    assert entry[0] == name
    return path, entry[1]


# --- one unsigned approval, as the demo's last line says it


def test_one_command_makes_a_candidate_the_champion(terminal: Terminal) -> None:
    digest = propose_in(terminal.project).digest
    printed = terminal.type("approve", digest[:12], "--by", "you")
    assert f"promoted  {digest[:12]}  record 1" in printed
    assert "evenkeel rollback" in printed
    alias = json.loads((terminal.project / "registry/objects/aliases/champion.json").read_text())
    assert (alias["digest"], alias["record"]) == (digest, 1)


def test_the_one_who_ran_it_may_approve_where_nothing_is_signed(terminal: Terminal) -> None:
    digest = propose_in(terminal.project).digest
    assert "promoted" in terminal.type("approve", digest[:12], "--by", STARTER)


def test_a_gate_that_fails_is_exit_code_3_and_names_the_check(terminal: Terminal) -> None:
    digest = propose_in(terminal.project).digest
    terminal.policy(gate={"min_gain": 0.5})
    printed = terminal.type("approve", digest[:12], "--by", "ada", code=3)
    assert "the gate failed" in printed and "held-out gain: fail" in printed and "no approval changes that" in printed
    assert approvals_of(terminal.store, digest) == []
    shown = terminal.type("show", digest[:12])
    assert "refused by the gate: held-out gain" in shown and "evenkeel reject" in shown
    assert "evenkeel approve" not in shown


@pytest.mark.slow
def test_a_comparison_that_is_yet_to_be_made_is_no_refusal(terminal: Terminal) -> None:
    promoted(terminal, 0.0)
    shown = terminal.type("show", propose_in(terminal.project, 1.0).digest[:12])
    assert (
        "`evenkeel approve` do where" in " ".join(shown.split())
        and "awaiting approval" in shown
        and "evenkeel approve" in shown
    )


def test_the_next_approval_of_a_doubtful_gate_is_shown_with_a_reason(terminal: Terminal) -> None:
    terminal.policy(promote={"approvals": 2})
    digest = propose_in(terminal.project, doubt="the curve is fine").digest
    said = terminal.type("approve", digest[:12], "--by", "ada", "--reason", "I looked")
    assert f"another person: evenkeel approve {digest[:12]} --by YOUR-NAME --reason WHY" in said


def test_a_doubtful_gate_asks_for_a_reason(terminal: Terminal) -> None:
    digest = propose_in(terminal.project, doubt="the curve is fine").digest
    printed = terminal.type("approve", digest[:12], "--by", "ada", code=2)
    assert "who gives a reason" in printed and "overridden: the curve is fine" in printed
    terminal.type("approve", digest[:12], "--by", "ada", "--reason", "I read the curve")
    assert records(terminal.store)[0].gate["result"] == "inconclusive"


def test_without_a_policy_nothing_is_decided(terminal: Terminal) -> None:
    digest = propose_in(terminal.project).digest
    (terminal.project / FILE).unlink()
    assert "there is no promotion policy" in terminal.type("approve", digest[:12], "--by", "ada", code=2)


# --- signed approvals


@pytest.fixture
def signing(terminal: Terminal) -> Terminal:
    """A project that asks for two signatures of three people, each with a key in the default place."""
    listed = {name: key_of(terminal, name)[1] for name in ("ada", "edsger", STARTER)}
    signed = {"approvals": 2, "signed": True}
    terminal.policy(approvers=listed, promote=signed, rollback={"approvals": 1, "signed": True}, valid_days=7)
    return terminal


def key(name: str) -> str:
    return str(Path.home() / f".config/evenkeel/{name}.pem")


def test_what_keys_new_prints_is_what_the_policy_takes_and_two_signatures_promote(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    printed = signing.type("approve", digest[:12], "--by", "ada", "--key", key("ada"))
    assert "1 of 2 approvals: ada" in printed and "another person" in printed
    assert "1 of 2 approvals" in signing.type("promote", digest[:12], code=3)
    assert "ada" in signing.type("show", digest[:12])
    assert "promoted" in signing.type("approve", digest[:12], "--by", "edsger", "--key", key("edsger"))
    record = records(signing.store)[0]
    assert record.by == "ada, edsger"
    assert all(signature_holds(approval) for approval in record.approvals)


def test_what_would_not_count_is_refused_at_once_and_not_recorded(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    refusals = {
        ("--by", "ada"): "it is not signed",
        ("--by", "eve", "--key", key("ada")): "lists other approvers",
        ("--by", "edsger", "--key", key("ada")): "signed with the key of ada",
        ("--by", STARTER, "--key", key(STARTER)): "by the one who started the run",
        ("--by", "ada", "--key", key("ada"), "--expires-days", "8"): "the policy allows 1 to 7",
        ("--by", "ada", "--key", key("absent")): "file not found",
        ("--by", " ", "--key", key("ada")): "a name is empty",
        ("--by", "ada", "--print"): "nothing to print without a signature",
    }
    for arguments, said in refusals.items():
        assert said in signing.type("approve", digest[:12], *arguments, code=2)
    assert approvals_of(signing.store, digest) == [] and records(signing.store) == []


def test_whoever_edits_the_record_of_who_started_a_run_is_found_out(signing: Terminal) -> None:
    candidate = propose_in(signing.project)
    path = signing.project / "registry/objects" / candidate.key
    path.write_text(path.read_text().replace(f'"{STARTER}"', '"ada"'))
    for who in ("ada", STARTER):
        printed = signing.type("approve", candidate.digest, "--by", who, "--key", key(who), code=2)
        assert f"started by ada, says the candidate's record, and its evidence says {STARTER}" in printed
    assert approvals_of(signing.store, candidate.digest) == []


def test_a_signed_approval_can_be_printed_for_a_form_and_is_stored_nowhere(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    printed = signing.type("approve", digest[:12], "--by", "ada", "--key", key("ada"), "--print")
    approval = read_approval(printed, "form")
    assert signature_holds(approval) and approval.statement.digest == digest
    assert approvals_of(signing.store, digest) == []


@pytest.mark.slow
def test_a_signed_rejection_can_be_printed_too(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    asked = ("reject", digest[:12], "--by", "ada", "--reason", "odd samples")
    printed = signing.type(*asked, "--key", key("ada"), "--print")
    approval = read_approval(printed, where="the form")
    assert (approval.statement.action, signature_holds(approval)) == ("reject", True)
    assert approvals_of(signing.store, digest) == [] and records(signing.store) == []
    assert "nothing to print without a signature" in signing.type(*asked, "--print", code=2)


@pytest.mark.slow
def test_what_is_to_be_typed_next_names_a_key_where_only_a_signature_counts(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    shown = signing.type("show", digest[:12])
    assert shown.count("--key YOUR-KEY") == 2
    assert "--key YOUR-KEY" in signing.type("approve", digest[:12], "--by", "ada", "--key", key("ada"))
    promoted = signing.type("approve", digest[:12], "--by", "edsger", "--key", key("edsger"))
    assert "evenkeel rollback --by YOUR-NAME --reason WHY --key YOUR-KEY" in promoted


@pytest.mark.slow
def test_the_same_person_again_is_not_recorded_twice(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    for _ in range(2):
        signing.type("approve", digest[:12], "--by", "ada", "--key", key("ada"))
    assert len(approvals_of(signing.store, digest)) == 1


@pytest.mark.slow
def test_a_reason_that_is_given_later_is_recorded(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    for reason in ("", "read every sample", ""):
        signing.type("approve", digest[:12], "--by", "ada", "--key", key("ada"), "--reason", reason)
    assert sorted(one.statement.reason for one in approvals_of(signing.store, digest)) == ["", "read every sample"]


@pytest.mark.slow
def test_an_approval_that_is_renewed_counts_for_as_long_as_the_new_one(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    for days in ("1", "7"):
        signing.type("approve", digest[:12], "--by", "ada", "--key", key("ada"), "--expires-days", days)
    short, long = sorted(approvals_of(signing.store, digest), key=lambda one: one.statement.expires)
    made, asked = datetime.fromisoformat(short.statement.at), short.statement.question
    for days in (0.5, 6):
        terms = Terms(asked, load_policy(signing.project), made + timedelta(days=days), (STARTER,))
        assert standing([short, long], terms).counted == (long,)


@pytest.mark.slow
def test_the_approval_of_a_roll_back_is_renewed_too_and_a_command_typed_twice_is_no_renewal(terminal: Terminal) -> None:
    terminal.policy(rollback={"approvals": 2})
    first = promoted(terminal, 0.0)
    promoted(terminal, 1.0, first)
    for days in ("1", "1", "7"):
        terminal.type("rollback", "--by", "ada", "--reason", "users complain", "--expires-days", days, code=3)
    assert [one.statement.action for one in approvals_of(terminal.store, first)].count("rollback") == 2


def test_signed_approvals_of_one_registry_promote_nothing_in_another(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    for name in ("ada", "edsger"):
        signing.type("approve", digest[:12], "--by", name, "--key", key(name))
    staging = (signing.project / "registry").rename(signing.project / "staging")
    assert propose_in(signing.project).digest == digest
    shutil.copytree(staging / "objects/approvals", signing.project / "registry/objects/approvals")
    printed = signing.type("promote", digest[:12], code=3)
    assert "0 of 2 approvals" in printed and printed.count("it was made in the registry") == 2
    assert records(signing.store) == []
    (signing.project / "registry").rename(signing.project / "other")
    shutil.copytree(staging, signing.project / "registry")  # a backup, put back
    assert "promoted by ada, edsger" in signing.type("show", digest[:12])


def test_no_private_key_is_printed_or_stored_anywhere(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    for name in ("ada", "edsger"):
        signing.type("approve", digest[:12], "--by", name, "--key", key(name))
    signing.type("show", digest[:12])
    signing.type("history", "--json")
    signing.type("rollback", "--by", "ada", "--reason", "x", "--key", key("ada"), code=2)
    signing.type("keys", "new", "ada", code=2)
    signing.type("keys", "new", "ci", "--for", "checkpoints")
    secrets = [line for pem in Path.home().rglob("*.pem") for line in pem.read_text().splitlines()[1:-1]]
    assert len(secrets) >= 5
    everything = [path.read_bytes() for path in signing.project.rglob("*") if path.is_file() and path.suffix != ".pem"]
    for secret in secrets:
        assert secret not in signing.said
        assert not any(secret.encode() in data for data in everything)
    assert "PRIVATE" not in signing.said


# --- keys


def test_a_key_is_not_made_where_git_would_record_it(terminal: Terminal) -> None:
    assert "would be recorded with the code" in terminal.type("keys", "new", "ada", "--out", "ada.pem", code=2)
    assert not (terminal.project / "ada.pem").exists()
    (terminal.project / ".gitignore").write_text("*.pem\n")
    terminal.type("keys", "new", "ada", "--out", "ada.pem")
    (terminal.project / "loop.pem").symlink_to("loop.pem")
    terminal.type("keys", "new", "ada", "--out", "loop.pem", code=2)


def test_a_key_for_checkpoints_is_printed_as_the_policy_takes_it(terminal: Terminal) -> None:
    printed = terminal.type("keys", "new", "the line", "--for", "checkpoints")
    (terminal.project / FILE).write_text(printed[printed.index("signers:") :])
    assert list(load_policy(terminal.project).settings.signers) == ["the line"]


def test_with_a_key_of_the_registry_a_copy_of_the_folder_decides_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = terminal.type("keys", "new", "main", "--for", "registry")
    (terminal.project / FILE).write_text(printed[printed.index("registry_key:") :])
    commit(terminal.project)
    digest = propose_in(terminal.project).digest
    assert "it is not here" in terminal.type("approve", digest[:12], "--by", "ada", code=2)
    assert records(terminal.store) == []
    monkeypatch.setenv("EVENKEEL_REGISTRY_KEY", str(Path.home() / ".config/evenkeel/main-registry.pem"))
    assert "promoted" in terminal.type("approve", digest[:12], "--by", "ada")
    terminal.type("verify", "champion")
    record = records(terminal.store)[0]
    (terminal.project / "registry/objects" / record.key).write_bytes(replace(record, signature=None).to_bytes())
    shutil.rmtree(terminal.project / "registry/objects/aliases")
    assert "not signed with the registry's key" in " ".join(terminal.type("verify", "champion", code=3).split())


# --- what was decided


def test_a_rejection_is_final_and_shown(terminal: Terminal) -> None:
    digest = propose_in(terminal.project).digest
    assert "rejected" in terminal.type("reject", digest[:12], "--by", "ada", "--reason", "odd samples")
    assert "already decided: rejected by ada" in terminal.type("approve", digest[:12], "--by", "bob", code=2)
    assert "odd samples" in terminal.type("history")
    assert "rejected by ada (record 1)" in terminal.type("show", digest[:12])


def test_an_approval_holds_whatever_is_given_for_the_address_of_a_server(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:port/api")
    assert "promoted" in terminal.type("approve", f"sha256:{propose_in(terminal.project).digest}", "--by", "ada")


def promoted(terminal: Terminal, value: float, before: str | None = None) -> str:
    digest = propose_in(terminal.project, value, champion=before).digest
    terminal.type("approve", digest[:12], "--by", "ada")
    return digest


@pytest.mark.slow
def test_a_roll_back_that_is_typed_twice_goes_back_once(terminal: Terminal) -> None:
    first = promoted(terminal, 0.0)
    second = promoted(terminal, 1.0, first)
    promoted(terminal, 2.0, second)
    back = ["rollback", "--by", "bob", "--reason", "users complain"]
    assert f"rolled back  {second[:12]}  record 4" in terminal.type(*back)
    again = terminal.type(*back)
    assert f"already decided  {second[:12]}  rolled back by bob (record 4)" in again
    assert f"nothing was recorded; the champion is {second[:12]}" in again and "rollback --to DIGEST" in again
    again = terminal.type("rollback", "--by", "eve", "--reason", "x", "--to", f"sha256:{second}", code=2)
    assert "is the champion already" in again
    terminal.type("rollback", "--by", "eve", "--reason", "further")
    alias = champion(terminal.store)
    assert alias is not None and alias.digest == first
    assert "no champion came before" in terminal.type("rollback", "--by", "eve", "--reason", "and on", code=2)
    assert "champion again: rolled back by eve (record 5)" in terminal.type("show")
    printed_json = json.loads(terminal.type("history", "--json"))
    assert [record["outcome"] for record in printed_json] == ["promoted"] * 3 + ["rolled back"] * 2


def test_history_says_where_it_looked_for_a_registry_that_is_not_there(terminal: Terminal) -> None:
    assert f"there is no registry at {terminal.project / 'registry'}" in terminal.type("history")
    propose_in(terminal.project)
    assert "there is no registry" not in terminal.type("history")


@pytest.mark.slow
def test_what_was_gone_back_over_is_said_to_be_the_champion_no_more(terminal: Terminal) -> None:
    first = promoted(terminal, 0.0)
    second = promoted(terminal, 1.0, first)
    assert f"already decided  {second[:12]}" in terminal.type("approve", second, "--by", "ada")
    terminal.type("rollback", "--by", "bob", "--reason", "users complain")
    now = f"the champion is {first[:12]}"
    for arguments in (["approve", second, "--by", "ada"], ["promote", second]):
        printed = terminal.type(*arguments, code=3)
        assert now in printed and f"evenkeel rollback --to {second[:12]}" in printed
    assert f"{now} now, rolled back by bob (record 3)" in terminal.type("show", second)
    assert "champion again: rolled back by bob" in terminal.type("show", first)
    assert len(records(terminal.store)) == 3


@pytest.mark.slow
def test_the_champion_is_not_rejected_on_other_evidence_and_stays_champion(terminal: Terminal) -> None:
    digest = promoted(terminal, 0.0)
    again = propose_in(terminal.project, 0.0, branch="runs/again")
    assert again.digest == digest and again.evidence != records(terminal.store)[0].evidence
    said = terminal.type("reject", digest, "--by", "bob", "--reason", "odd", code=2)
    assert "already decided: promoted by ada" in said and "evenkeel rollback" in said
    assert [one.statement.action for one in approvals_of(terminal.store, digest)] == ["promote"]
    assert len(records(terminal.store)) == 1


@pytest.mark.slow
def test_a_finished_run_that_a_colleague_repeats_stays_decided(terminal: Terminal) -> None:
    first = propose_in(terminal.project)
    terminal.type("reject", first.digest, "--by", "ada", "--reason", "the samples are wrong")
    again = propose_in(terminal.project, started_by=(STARTER, "zoe"))
    assert again.evidence == first.evidence
    assert "rejected by ada (record 1)" in terminal.type("show", first.digest)
    assert "already decided: rejected by ada" in terminal.type("approve", first.digest, "--by", "zoe", code=2)


@pytest.mark.parametrize("who", [(STARTER, "zoe"), ()], ids=["a colleague", "unknown"])
@pytest.mark.slow
def test_an_approval_outlives_that_the_finished_run_is_repeated(terminal: Terminal, who: tuple[str, ...]) -> None:
    terminal.policy(promote={"approvals": 2})
    digest = propose_in(terminal.project).digest
    terminal.type("approve", digest, "--by", "ada")
    propose_in(terminal.project, started_by=who)
    assert "promoted" in terminal.type("approve", digest, "--by", "lin")
    assert records(terminal.store)[0].by == "ada, lin"


@pytest.mark.slow
def test_who_repeated_a_finished_run_has_started_it_too(signing: Terminal) -> None:
    digest = propose_in(signing.project).digest
    propose_in(signing.project, started_by=(STARTER, "edsger"))
    said = signing.type("approve", digest, "--by", "edsger", "--key", key("edsger"), code=2)
    assert "it is by the one who started the run" in said
    assert "1 of 2 approvals" in signing.type("approve", digest, "--by", "ada", "--key", key("ada"))


def test_the_champion_on_other_evidence_needs_no_decision(terminal: Terminal) -> None:
    digest = promoted(terminal, 0.0)
    propose_in(terminal.project, branch="runs/again")
    assert decision_on(terminal.store, digest) == records(terminal.store)[0]


def test_a_candidate_is_judged_again_where_another_became_the_champion_meanwhile(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = promoted(terminal, 0.0)
    other = propose_in(terminal.project, 1.0, champion=first).digest
    digest = propose_in(terminal.project, 2.0).digest
    asked: list[str] = []

    def meanwhile(settings: Any, evidence: Any, candidate: Path, champion: Path, cache: Path) -> dict[str, Any]:
        asked.append(sha256_tree(champion))
        if len(asked) == 1:
            terminal.type("approve", other, "--by", "grace")
        return compare_with_champion(settings, evidence, candidate, champion, cache)

    monkeypatch.setattr(against, "compare_with_champion", meanwhile)
    printed = terminal.type("approve", digest, "--by", "ada", "--reason", "read it")
    assert f"promoted  {digest[:12]}  record 3" in printed and f"before it  {other[:12]}" in printed
    assert asked == [first, other]


@pytest.mark.slow
def test_what_another_decided_meanwhile_is_not_decided_again(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    promoted(terminal, 0.0)
    digest = propose_in(terminal.project, 1.0).digest

    def meanwhile(*_: Any) -> dict[str, Any]:
        monkeypatch.setattr(against, "compare_with_champion", compare_with_champion)
        terminal.type("approve", digest, "--by", "grace", "--reason", "read it")
        return compare_with_champion(*_)

    monkeypatch.setattr(against, "compare_with_champion", meanwhile)
    printed = terminal.type("approve", digest, "--by", "ada", "--reason", "read it")
    assert f"already decided  {digest[:12]}  promoted by grace (record 2)" in printed


def test_show_says_where_a_checkpoint_comes_from_and_how_to_go_on(terminal: Terminal) -> None:
    assert "there is no champion yet" in terminal.type("show", code=2)
    digest = propose_in(terminal.project).digest
    printed = terminal.type("show", digest[:12])
    for text in ("demo-0", "held-out gain", "started by", STARTER, "0 of 1 approvals", "evenkeel approve"):
        assert text in printed
    terminal.type("approve", digest[:12], "--by", "ada", "--reason", "read it")
    printed_json = json.loads(terminal.type("show", "champion", "--json"))
    assert (printed_json["digest"], printed_json["names"][0]) == (digest, "champion")
    assert [(one["by"], one["counts"]) for one in printed_json["approvals"]] == [("ada", True)]


def test_the_challenger_is_the_newest_candidate_whose_gate_passed(terminal: Terminal) -> None:
    for value in (0.0, 1.0):
        digest = propose_in(terminal.project, value).digest
    propose_in(terminal.project, 2.0, doubt="odd")
    assert json.loads(terminal.type("show", "challenger", "--json"))["digest"] == digest


def test_a_damaged_log_is_exit_code_2_for_everything(terminal: Terminal) -> None:
    digest = promoted(terminal, 0.0)
    (terminal.project / "registry/objects/promotions/000001.json").write_text("{}")
    for arguments in (
        ["history"],
        ["show"],
        ["approve", digest, "--by", "ada"],
        ["rollback", "--by", "a", "--reason", "b"],
    ):
        assert "not a promotion record" in terminal.type(*arguments, code=2)
