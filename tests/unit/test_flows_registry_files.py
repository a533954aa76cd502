"""`evenkeel verify` and `evenkeel pull`: nothing leaves the registry that does not hold."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from components.config.keys import own_key_file
from components.config.promotion import FILE, OWN_SIGNER, load_policy
from components.errors import InputError
from components.files import sha256_tree
from components.registry import (
    Approval,
    DirectoryStore,
    PromotionRecord,
    Question,
    appending,
    candidates,
    find,
    identify,
    read_history,
    state,
)
from components.registry.clock import stamp, utc_now
from components.registry.keys import new_key, public_pem, read_key, write_key
from components.registry.records import verdict
from components.registry.signing import PREFIX
from flows.cli import app
from flows.governance.registry import signing_key, verified
from flows.host.git import IDENTITY, git
from tests.code_graph import ROOT
from tests.proposals import commit, empty_project, propose_in

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project with two candidates, and the digest of the first."""
    project = tmp_path_factory.mktemp("whole") / "project"
    empty_project(project)
    propose_in(project, 2.0)
    return project, propose_in(project, 1.0).digest


@pytest.fixture
def candidate(whole: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    project = Path(shutil.copytree(whole[0], tmp_path / "project"))
    monkeypatch.chdir(project)
    return whole[1]


def verify(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and what was found out about every thing that was looked at."""
    result = RUNNER.invoke(app, ["verify", *arguments, "--json"])
    assert result.exit_code in (0, 3), result.output
    return result.exit_code, {one["what"]: one for one in json.loads(result.output)}


def refusal(*arguments: str) -> InputError:
    """What a command is refused with."""
    error = RUNNER.invoke(app, list(arguments)).exception
    assert isinstance(error, InputError)
    return error


def tree(digest: str) -> Path:
    return Path("registry/trees") / digest


def test_an_unchanged_candidate_holds(candidate: str) -> None:
    code, found = verify(candidate[:12])
    assert code == 0
    assert all(one["holds"] for one in found.values())
    words = {what: one["words"] for what, one in found.items()}
    assert words["files"] == "match the digest"
    assert words["format"] == "safetensors, and nothing that can run code"
    assert words["signature"] == f"by {OWN_SIGNER}"
    assert words["evidence"].startswith("whole, ")
    assert words["chain"] == "0 records in one chain, the champion is none yet"


def test_a_person_sees_a_row_for_each(candidate: str) -> None:
    result = RUNNER.invoke(app, ["verify", "--all"])
    assert result.exit_code == 0
    assert result.output.count("signature") == 2


def set_schema(candidate: str) -> None:
    path = Path(f"registry/objects/candidates/{candidate}.json")
    record = json.loads(path.read_text())
    del record["evidence"]
    path.write_text(json.dumps({**record, "schema": 1}))


def evidence_of(candidate: str) -> Path:
    record = json.loads(Path(f"registry/objects/candidates/{candidate}.json").read_text())
    return tree(record["evidence"])


@pytest.mark.parametrize(
    ("damage", "broken"),
    [
        (lambda digest: (tree(digest) / "config.json").write_text("{}"), {"files", "format"}),
        (lambda digest: (tree(digest) / "extra.json").write_text("{}"), {"files", "format"}),
        (lambda digest: (tree(digest) / "tokenizer.json").unlink(), {"files", "format"}),
        (lambda digest: (tree(digest) / "tokenizer.json").rename(tree(digest) / "vocab.json"), {"files", "format"}),
        (lambda digest: (tree(digest) / "empty").mkdir(), {"format"}),
        (lambda digest: (tree(digest) / "link").symlink_to("/etc/passwd"), {"files", "format"}),
        (lambda digest: Path("other.json").hardlink_to(tree(digest) / "config.json"), {"format"}),
        (lambda digest: shutil.rmtree(tree(digest)), {"files", "format"}),
        (lambda digest: shutil.rmtree(f"registry/objects/{PREFIX}{digest}"), {"signature"}),
        (lambda digest: (evidence_of(digest) / "out/gate.json").write_text("{}"), {"evidence"}),
        (lambda digest: shutil.rmtree(evidence_of(digest)), {"evidence"}),
        (set_schema, {"evidence"}),
        (lambda digest: own_key_file(Path()).unlink(), {"signature"}),
    ],
)
def test_what_does_not_hold_is_named(candidate: str, damage: Callable[[str], object], broken: set[str]) -> None:
    damage(candidate)
    code, found = verify(candidate)
    assert code == 3
    assert {what for what, one in found.items() if not one["holds"]} == broken


def test_a_checkpoint_signed_by_another_project_does_not_hold(candidate: str, tmp_path: Path) -> None:
    own_key_file(Path()).unlink()
    signing_key(Path(), load_policy(Path()))
    code, found = verify(candidate)
    assert (code, found["signature"]["holds"]) == (3, False)
    assert "the key is not trusted" in found["signature"]["words"]


def test_records_that_contradict_themselves_do_not_hold(candidate: str) -> None:
    Path("registry/objects/promotions").mkdir()
    Path("registry/objects/promotions/000002.json").write_text("{}")
    code, found = verify(candidate)
    assert (code, found["chain"]["holds"]) == (3, False)
    code, found = verify("champion")
    assert (code, list(found)) == (3, ["chain"])


# --- what the records name


@pytest.fixture(scope="module")
def approved(whole: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, after ada has approved the candidate."""
    project = Path(shutil.copytree(whole[0], tmp_path_factory.mktemp("approved") / "project"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        result = RUNNER.invoke(app, ["approve", whole[1], "--by", "ada"])
    assert result.exit_code == 0, result.exception
    return project


@pytest.fixture
def champion(approved: Path, whole: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The candidate, as it became champion by the policy of the project."""
    monkeypatch.chdir(shutil.copytree(approved, tmp_path / "project"))
    return whole[1]


def forge(champion: str, policy: str | None = None, **said: Any) -> None:
    """Another champion, by a writer of the registry without any approval."""
    store = DirectoryStore(Path("registry"))
    other = next(one for one in candidates(store) if one.digest != champion)
    history = read_history(store)
    first = history.records[0]
    about: dict[str, Any] = {"digest": other.digest, "evidence": other.evidence, "base": 1}
    statement = replace(first.approvals[0].statement, **about, policy=policy or first.policy_sha256, **said)
    made = about | {"number": 2, "previous": champion, "before": history.head, "policy_sha256": statement.policy}
    made["by"] = statement.by
    record = replace(first, **made, approvals=(Approval(statement),))
    store.put_if_absent(record.key, record.to_bytes())


def test_a_champion_that_its_policy_asked_for_holds(champion: str) -> None:
    code, found = verify("champion")
    assert code == 0
    assert found["approvals"]["words"] == "1 record, each with the approvals that its policy required"
    assert RUNNER.invoke(app, ["pull", "--to", "copy"]).exit_code == 0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"policy": "ab" * 32}, "which neither the registry nor this project's history has"),
        ({"at": "2020-01-01T00:00:00+00:00", "expires": "2020-01-02T00:00:00+00:00"}, "0 of 1 approvals"),
    ],
)
def test_a_champion_without_provable_approvals_is_reported_and_not_pulled(
    champion: str, change: dict[str, Any], problem: str
) -> None:
    forge(champion, **change)
    code, found = verify("--all")
    assert (code, found["approvals"]["holds"]) == (3, False)
    assert problem in found["approvals"]["words"]
    for command in ("history", "show"):
        assert problem in " ".join(RUNNER.invoke(app, [command]).output.split())
    assert problem in refusal("pull", "champion", "--to", "copy").what
    assert not Path("copy").exists()


def test_what_a_record_says_is_shown_as_it_is(champion: str) -> None:
    forge(champion, by="ada [/x]", at="2020-01-01T00:00:00+00:00", expires="2020-01-02T00:00:00+00:00")
    shown = RUNNER.invoke(app, ["show"])
    assert shown.exit_code == 0 and "ada [/x]" in shown.output.splitlines()[-1]


def promote_by_hand(digest: str, by: str) -> None:
    """The first record, written past all checks by an approver who can write to the registry and says that the gate
    passed."""
    store, policy, now = DirectoryStore(Path("registry")), load_policy(Path()), utc_now()
    evidence, gate = find(store, digest).evidence, {"result": "pass", "checks": []}
    question = Question("promote", digest, evidence, policy.sha256, 0, identify(store), verdict(gate))
    approval = Approval(state(question, by=by, reason="", at=now, valid=timedelta(days=1)))
    about = (1, "promote", "promoted", digest, None, 0, evidence, gate, policy.sha256)
    record = PromotionRecord(*about, (approval,), by, "", stamp(now), None)
    store.put_if_absent(record.key, record.to_bytes())


def test_what_the_gate_refuses_is_not_pulled_whatever_its_record_says_of_the_gate(candidate: str) -> None:
    Path(FILE).write_text("gate: {min_gain: 0.9}\n")
    commit(Path())
    promote_by_hand(candidate, "ada")
    code, found = verify("champion")
    assert code == 3
    assert "judged again, the gate does not let it pass: held-out gain" in found["approvals"]["words"]
    assert "held-out gain" in refusal("pull", "champion", "--to", "copy").what


def test_a_name_added_to_the_candidate_record_does_not_make_the_starters_approval_count(candidate: str) -> None:
    """Who started the run is read from the evidence, which whoever can write to the registry cannot change."""
    one = find(DirectoryStore(Path("registry")), candidate)
    assert one.run["started_by"] == ["grace"]
    Path(FILE).write_text("promote: {own_approval: false}\n")
    commit(Path())
    edited = replace(one, run={**one.run, "started_by": "edsger"})
    (Path("registry/objects") / one.key).write_bytes(edited.to_bytes())
    promote_by_hand(candidate, "grace")
    code, found = verify("champion")
    assert code == 3
    assert "it is by the one who started the run" in found["approvals"]["words"]


def test_a_registry_that_was_put_back_is_seen_by_the_witness_of_the_policy(candidate: str) -> None:
    Path(FILE).write_text("witness: {path: witness}\n")
    commit(Path())
    assert RUNNER.invoke(app, ["approve", candidate, "--by", "ada"]).exit_code == 0
    shutil.copytree("registry", "earlier")
    better = propose_in(Path(), 3.0, champion=candidate).digest
    assert RUNNER.invoke(app, ["approve", better, "--by", "ada"]).exit_code == 0
    code, found = verify("champion")
    assert (code, found["witness"]["words"]) == (0, "it has seen record 2")
    shutil.rmtree("registry")
    Path("earlier").rename("registry")
    code, found = verify("champion")
    assert [what for what, one in found.items() if not one["holds"]] == ["witness"]
    problem = "the witness has seen record 2, and this registry has 1"
    assert code == 3 and problem in found["witness"]["words"]
    assert problem in refusal("pull", "champion", "--to", "copy").what
    assert not Path("copy").exists()


def test_a_champion_that_is_proposed_again_with_another_gate_holds_by_the_evidence_it_was_approved_on(
    champion: str,
) -> None:
    before = find(DirectoryStore(Path("registry")), champion)
    after = propose_in(Path(), 1.0, champion=champion)
    assert after.digest == champion and after.gate != before.gate
    assert verify("champion")[0] == 0
    assert RUNNER.invoke(app, ["pull", "champion", "--to", "copy"]).exit_code == 0


def test_the_same_command_after_a_crash_shows_the_decision_to_the_witness(
    candidate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(FILE).write_text("witness: {path: witness}\n")
    commit(Path())

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(appending, "note_seen", killed)
        RUNNER.invoke(app, ["approve", candidate, "--by", "ada"])
    assert not Path("witness/objects/heads").exists()
    assert RUNNER.invoke(app, ["promote", candidate]).exit_code == 0
    assert verify("champion")[1]["witness"]["words"] == "it has seen record 1"


def test_a_champion_of_before_holds_once_the_new_policy_was_adopted(champion: str) -> None:
    Path(FILE).write_text("promote: {approvals: 3}\n")
    assert "is not committed" in str(RUNNER.invoke(app, ["reject", champion, "--by", "ada"]).exception)
    commit(Path())
    code, found = verify("champion")
    assert code == 3 and "which was not adopted there" in found["approvals"]["words"]
    assert "evenkeel adopt-policy" in found["approvals"]["words"]
    for name in ("ada", "grace"):
        waiting = RUNNER.invoke(app, ["adopt-policy", "--by", name])
        assert waiting.exit_code == 3, waiting.output
    adopted = RUNNER.invoke(app, ["adopt-policy", "--by", "lin"])
    assert adopted.exit_code == 0 and "record 2" in adopted.output
    assert verify("champion")[0] == 0
    assert RUNNER.invoke(app, ["pull", "--to", "copy"]).exit_code == 0


def test_adopting_signers_who_did_not_sign_the_champion_says_what_follows_and_how_to_prevent_it(champion: str) -> None:
    Path(FILE).write_text(f"signers: {json.dumps({'ci': public_pem(new_key('checkpoints'))})}\n")
    commit(Path())
    adopted = RUNNER.invoke(app, ["adopt-policy", "--by", "ada"])
    said = " ".join(adopted.output.split())
    assert adopted.exit_code == 0 and f"the champion {champion[:12]} cannot be pulled or compared with" in said
    assert "no signature of a trusted key (ci)" in said and "propose it again where a trusted key is" in said
    assert RUNNER.invoke(app, ["pull", "--to", "copy"]).exit_code != 0


def test_a_policy_that_no_commit_has_any_more_can_still_be_replaced(champion: str) -> None:
    Path(FILE).write_text("valid_days: 4\n")
    git(Path(), "add", "configs")
    git(Path(), "commit", "--quiet", "--amend", "--message=configs", extra=IDENTITY)
    better = propose_in(Path(), 3.0, champion=champion).digest
    assert "adopt it" in str(refusal("approve", better, "--by", "ada").how)
    assert RUNNER.invoke(app, ["adopt-policy", "--by", "ada"]).exit_code == 0
    assert RUNNER.invoke(app, ["approve", better, "--by", "ada"]).exit_code == 0
    assert verify("champion")[0] == 0


def test_what_only_a_record_names_is_looked_at_too(champion: str) -> None:
    Path(f"registry/objects/candidates/{champion}.json").unlink()
    (tree(champion) / "config.json").write_text("{}")
    result = RUNNER.invoke(app, ["verify", "--all"])
    assert result.exit_code == 3 and "its candidate record is gone" in " ".join(result.output.split())


def test_the_evidence_that_was_decided_by_is_looked_at_when_there_is_newer(champion: str) -> None:
    decided = evidence_of(champion)
    propose_in(Path(), 1.0, commit="6" * 40)
    assert evidence_of(champion) != decided
    shutil.rmtree(decided)
    assert verify("--all")[0] == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [(["0" * 12], "no such candidate"), (["champion"], "no champion yet"), (["abc", "--all"], "every checkpoint")],
)
def test_what_is_not_there_is_one_clear_error(candidate: str, arguments: list[str], problem: str) -> None:
    assert problem in str(refusal("verify", *arguments))


def test_without_a_registry_nothing_was_verified(candidate: str) -> None:
    shutil.rmtree("registry")
    assert "there is no registry" in refusal("verify", "--all").what


def test_what_is_refused_makes_no_registry(candidate: str) -> None:
    shutil.rmtree("registry")
    refusal("rollback", "--by", "ada", "--reason", "why")
    assert not Path("registry").exists()


def test_a_registry_to_which_nothing_was_ever_proposed_is_none(candidate: str) -> None:
    shutil.rmtree("registry")
    identify(DirectoryStore(Path("registry")))
    assert "there is no registry" in refusal("verify", "--all").what


# --- pull


def test_a_copy_has_the_digest_of_the_checkpoint(candidate: str, tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["pull", candidate[:12], "--to", "../copies/mine"])
    assert result.exit_code == 0, result.output
    assert sha256_tree(tmp_path / "copies" / "mine") == candidate
    assert result.output.strip().endswith(f"sha256:{candidate}")


@pytest.mark.parametrize("there", ["folder", "empty folder", "file", "broken link"])
def test_what_is_at_the_target_is_not_touched(candidate: str, tmp_path: Path, there: str) -> None:
    target = tmp_path / "there"
    match there:
        case "folder":
            target.mkdir()
            (target / "mine.txt").write_text("mine")
        case "empty folder":
            target.mkdir()
        case "file":
            target.write_text("mine")
        case _:
            target.symlink_to(tmp_path / "nowhere")
    refusal("pull", candidate, "--to", str(target))
    if target.is_dir():
        assert [path.name for path in target.iterdir()] == (["mine.txt"] if there == "folder" else [])
    else:
        assert target.is_symlink() or target.read_text() == "mine"


@pytest.mark.parametrize(
    "damage",
    [
        lambda digest: (tree(digest) / "config.json").write_text("{}"),
        lambda digest: shutil.rmtree(f"registry/objects/{PREFIX}{digest}"),
        lambda digest: own_key_file(Path()).unlink(),
    ],
)
def test_what_does_not_hold_is_not_pulled(candidate: str, damage: Callable[[str], object]) -> None:
    damage(candidate)
    refusal("pull", candidate, "--to", "copy")
    assert not list(Path().glob("*copy*"))


# --- keys


def test_the_project_makes_its_key_once_for_its_owner_alone(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    assert load_policy(tmp_path).signers == {}
    path = signing_key(tmp_path, load_policy(tmp_path))
    assert path is not None and path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    assert signing_key(tmp_path, load_policy(tmp_path)) == path
    assert path.read_bytes() == before
    assert load_policy(tmp_path).signers == {OWN_SIGNER: public_pem(read_key(path))}


def listed(project: Path, public: str) -> None:
    """Make the policy list one signer."""
    shutil.copytree(ROOT / "configs", project / "configs")
    indented = "".join(f"\n    {line}" for line in public.splitlines())
    (project / "configs/promotion/policy.yaml").write_text(f"signers:\n  ci: |{indented}\n")


def test_where_the_policy_lists_signers_no_key_is_made_and_only_theirs_count(tmp_path: Path) -> None:
    theirs = write_key(new_key("checkpoints"), tmp_path / "ci.pem")
    listed(tmp_path / "project", public_pem(read_key(theirs)))
    policy = load_policy(tmp_path / "project")
    assert list(policy.signers) == ["ci"]
    assert signing_key(tmp_path / "project", policy) is None
    assert not own_key_file(tmp_path / "project").exists()
    write_key(new_key("checkpoints"), own_key_file(tmp_path / "project"))
    assert signing_key(tmp_path / "project", policy) is None
    own_key_file(tmp_path / "project").unlink()
    shutil.copy(theirs, own_key_file(tmp_path / "project"))
    assert signing_key(tmp_path / "project", policy) == own_key_file(tmp_path / "project")


@pytest.mark.parametrize(("text", "mode"), [("not a key", 0o600), (None, 0o644)])
def test_a_key_that_is_none_or_that_others_can_read_is_refused(tmp_path: Path, text: str | None, mode: int) -> None:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    path = own_key_file(tmp_path)
    if text is None:
        write_key(new_key("checkpoints"), path)
    else:
        path.parent.mkdir(parents=True)
        path.write_text(text)
    path.chmod(mode)
    with pytest.raises(InputError) as refused:
        signing_key(tmp_path, load_policy(tmp_path))
    assert "PRIVATE" not in str(refused.value)


def test_what_is_loaded_from_the_registry_is_verified(candidate: str) -> None:
    store = DirectoryStore(Path("registry"))
    assert verified(Path(), store, candidate) == store.tree(candidate)
    shutil.rmtree(f"registry/objects/{PREFIX}{candidate}")
    with pytest.raises(InputError, match="there is none"):
        verified(Path(), store, candidate)
