"""New data join by their content, in the order in which they were first seen, and a night that was is not repeated."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from components.config.keys import own_key_file
from components.config.promotion import Policy, load_policy
from components.errors import InputError
from components.files import append_line, sha256_file, write_json
from flows.governance.registry import project_store
from flows.host.git import git
from flows.nightly import start_row
from flows.recording.record import OutcomeRecord, new_record, write_record
from flows.retraining import joining
from flows.retraining.ledger import FinishedRun, JoinedFile, Ledger
from flows.retraining.plan import RetrainingPlan, Start, markdown, plan_retraining, summary_before, unchanged_summary
from flows.run.workspace import Workspace
from tests.code_graph import ROOT
from tests.proposals import key_in
from tests.unit.deciding import SIGNING, approve, propose

CONFIG = Path("night.yaml")
OLD = time.time() - 3600


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed project whose source has two rows, with an empty folder for incoming data; the working folder."""
    root = tmp_path / "project"
    (root / "incoming").mkdir(parents=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    demo = ROOT / "configs/demo.yaml"
    source = "data: {source: {kind: jsonl, path: base.jsonl}}"
    (root / CONFIG).write_text(f"extends: [{os.path.relpath(demo, root)}]\nname: night\n{source}\n", encoding="utf-8")
    (root / "base.jsonl").write_text(lines("base 1", "base 2"), encoding="utf-8")
    (root / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    (root / "configs/promotion").mkdir(parents=True)
    (root / "configs/promotion/policy.yaml").write_text("{}\n", encoding="utf-8")
    own_key_file(root).parent.mkdir(parents=True)
    shutil.copy(key_in(SIGNING), own_key_file(root))  # champions of these tests are signed with it
    ignored = "/runs/\n/.state/\n/registry/\n/incoming/\n/.dvc/config.local\n"
    (root / ".gitignore").write_text(ignored, encoding="utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=first")
    monkeypatch.chdir(root)
    monkeypatch.setattr("flows.governance.policies.refused_now", lambda *_: "")  # these champions have no evidence
    return root


def lines(*questions: str) -> str:
    return "".join(json.dumps({"question": text, "answer": "1"}) + "\n" for text in questions)


def arrives(name: str, text: str, at: float = OLD) -> Path:
    path = Path("incoming") / name
    path.write_text(text, encoding="utf-8")
    os.utime(path, (at, at))
    return path


def planned(project: Path, start: Start = "base", *overrides: str, incoming: str = "incoming") -> RetrainingPlan:
    return plan_retraining(project, CONFIG, incoming, start, overrides)


def source(plan: RetrainingPlan) -> Path:
    """Where the rows of tonight are."""
    path = str(plan.workspace.settings.data.source.path)  # type: ignore[union-attr]
    (found,) = (one for one in plan.workspace.inputs if one.path == path)
    return found.origin or plan.workspace.project / path


def questions(plan: RetrainingPlan) -> list[str]:
    return [json.loads(line)["question"] for line in source(plan).read_text(encoding="utf-8").splitlines()]


def end(plan: RetrainingPlan, candidate: str | None = None) -> None:
    now = datetime.now(UTC).isoformat()
    joining = plan.ledger.unsettled()
    plan.ledger.add(FinishedRun(plan.workspace.run_id, plan.key, plan.champion, candidate, "", now, joining))


def names(rows: Iterable[JoinedFile]) -> list[str]:
    return [row.name for row in rows]


# What joins


def test_without_new_data_the_run_is_that_of_the_configuration(project: Path) -> None:
    plan = planned(project)
    assert source(plan) == project / "base.jsonl"
    assert summary_before(plan) == ["no data joined", "starts from the base"]


def test_a_new_file_joins_the_source_and_keeps_the_names_of_its_rows(project: Path) -> None:
    arrives("b.jsonl", lines("new 1", "new 2"))
    plan = planned(project)
    assert questions(plan) == ["base 1", "base 2", "new 1", "new 2"]
    found = plan.workspace.settings.data.source
    assert found.name == "base"  # type: ignore[union-attr]
    assert source(plan).name == f"{sha256_file(source(plan))}.jsonl"
    assert "b.jsonl: 2 rows joined" in summary_before(plan)


def test_files_join_in_the_order_in_which_they_were_first_seen(project: Path) -> None:
    arrives("z.jsonl", lines("first"))
    planned(project)
    arrives("a.jsonl", lines("second"))
    assert questions(planned(project)) == ["base 1", "base 2", "first", "second"]


def test_what_joined_is_new_until_a_night_has_ended(project: Path) -> None:
    arrives("a.jsonl", lines("one"))
    assert names(planned(project).joined) == ["a.jsonl"]
    again = planned(project)
    assert names(again.joined) == ["a.jsonl"]
    end(again)
    arrives("b.jsonl", lines("two"))
    plan = planned(project)
    assert (names(plan.joined), names(plan.files)) == (["b.jsonl"], ["a.jsonl", "b.jsonl"])


def test_a_file_is_known_by_its_content_whatever_it_is_called(project: Path) -> None:
    path = arrives("a.jsonl", lines("one"))
    first = planned(project)
    path.rename("incoming/renamed.jsonl")
    arrives("copy.jsonl", lines("base 1", "base 2"))
    plan = planned(project)
    assert plan.workspace.run_id == first.workspace.run_id
    said = summary_before(plan)
    assert "renamed.jsonl has nothing new: it has the content of a.jsonl" in said
    assert "copy.jsonl is left out: it is the configured source itself" in said


def test_a_file_that_grew_takes_the_place_of_what_it_was(project: Path) -> None:
    arrives("log.jsonl", lines("one"))
    arrives("other.jsonl", lines("other"))
    end(planned(project))
    arrives("log.jsonl", lines("one", "two"))
    plan = planned(project)
    assert questions(plan) == ["base 1", "base 2", "one", "two", "other"]
    assert "log.jsonl: 2 rows joined, in place of an earlier version of 1 row" in summary_before(plan)
    end(plan)
    arrives("log.jsonl", lines("one", "two", "three"))
    assert questions(planned(project)) == ["base 1", "base 2", "one", "two", "three", "other"]


def test_a_file_that_grew_under_another_name_takes_the_place_of_what_it_was(project: Path) -> None:
    path = arrives("log.jsonl", lines("one"))
    end(planned(project))
    path.unlink()
    arrives("log.1.jsonl", lines("one", "two"))
    plan = planned(project)
    assert questions(plan)[2:] == ["one", "two"]
    said = "log.1.jsonl: 2 rows joined, in place of an earlier version, log.jsonl, of 1 row"
    assert said in summary_before(plan)


def test_a_corrected_file_takes_the_place_of_what_it_was_and_may_be_set_back(project: Path) -> None:
    arrives("a.jsonl", lines("one", "two", "three"))
    end(planned(project))
    for now in (["one", "2", "three"], ["one", "2"], ["one", "two", "three"]):
        arrives("a.jsonl", lines(*now))
        plan = planned(project)
        assert questions(plan)[2:] == now
        end(plan)


def test_a_name_that_is_used_again_for_other_data_is_another_file(project: Path) -> None:
    arrives("today.jsonl", lines("one", "two", "three"))
    end(planned(project))
    arrives("today.jsonl", lines("three", "four", "five"))
    assert questions(planned(project))[2:] == ["one", "two", "three", "three", "four", "five"]


@pytest.mark.parametrize("corrected", [lines("good"), None])
def test_a_file_leaves_when_it_is_corrected_or_removed_before_a_run_with_it_has_ended(
    project: Path, corrected: str | None
) -> None:
    arrives("a.jsonl", lines("one"))
    end(planned(project))
    arrives("b.jsonl", "bad\n")
    planned(project)  # the data stage refuses it
    if corrected:
        arrives("b.jsonl", corrected)
    else:
        Path("incoming/b.jsonl").unlink()
    plan = planned(project)
    assert questions(plan)[2:] == (["one", "good"] if corrected else ["one"])
    assert "b.jsonl no longer joins: it left or changed before a night with it had ended" in summary_before(plan)


def test_what_a_file_replaced_is_there_again_when_it_is_taken_away(project: Path) -> None:
    arrives("a.jsonl", lines("one"))
    end(planned(project))
    arrives("a.jsonl", lines("one", "two"))
    arrives("b.jsonl", lines("one", "two", "three"))
    assert questions(planned(project))[2:] == ["one", "two", "three"]
    Path("incoming/a.jsonl").unlink()
    assert questions(planned(project))[2:] == ["one", "two", "three"]
    Path("incoming/b.jsonl").unlink()
    assert questions(planned(project))[2:] == ["one"]


def test_a_last_line_without_its_break_and_a_byte_order_mark_do_no_harm(project: Path) -> None:
    (project / "base.jsonl").write_text(lines("base 1").rstrip("\n"), encoding="utf-8")
    arrives("a.jsonl", "\ufeff" + lines("one").rstrip("\n"))
    arrives("b.jsonl", lines("two"))
    assert questions(planned(project)) == ["base 1", "one", "two"]


def test_a_broken_row_joins_for_the_data_stage_to_judge(project: Path) -> None:
    arrives("a.jsonl", lines("one") + "not json\n")
    assert "not json" in source(planned(project)).read_text(encoding="utf-8")


# What waits, and what is not read


@pytest.mark.parametrize(
    ("text", "age", "why"),
    [
        (lines("one"), 5, "waits for the next night: it was written less than a minute ago"),
        (lines("one") + '{"question": "tw', 3600, "waits for the next night: its last line is not whole"),
        ("", 3600, "waits for the next night: it is empty"),
    ],
)
def test_a_file_that_is_being_written_waits_for_the_next_night(project: Path, text: str, age: float, why: str) -> None:
    arrives("a.jsonl", text, time.time() - age)
    plan = planned(project)
    assert (names(plan.joined), summary_before(plan)[1]) == ([], f"a.jsonl {why}")
    arrives("a.jsonl", lines("one", "two"))
    assert questions(planned(project))[2:] == ["one", "two"]


def test_a_night_that_is_planned_twice_has_the_files_of_when_it_began(project: Path) -> None:
    began = time.time() - 600
    for name, after in (("a", -90), ("b", -30), ("c", 30), ("d", 500)):
        arrives(f"{name}.jsonl", lines(name), began + after)
    plan = plan_retraining(project, CONFIG, "incoming", now=began)
    assert names(plan.joined) == ["a.jsonl"]
    assert names(planned(project).joined) == ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"]


def test_what_is_no_file_of_json_lines_is_named_and_not_read(project: Path, tmp_path: Path) -> None:
    arrives("notes.txt", "x")
    arrives(".hidden.jsonl", lines("hidden"))
    (tmp_path / "secret.jsonl").write_text(lines("secret"), encoding="utf-8")
    Path("incoming/link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    said = summary_before(planned(project))
    assert said[1:3] == [
        "link.jsonl is not read: it is no file of its own (a folder, a link)",
        "notes.txt is not read: its name does not end in .jsonl",
    ]
    assert not [line for line in said if "hidden" in line]


def test_a_file_whose_name_is_no_unicode_is_left_out_and_keeps_no_other_from_joining(project: Path) -> None:
    arrives("a.jsonl", lines("new"))
    arrives(os.fsdecode(b"caf\xe9.jsonl"), lines("other"))
    plan = planned(project)
    assert names(plan.joined) == ["a.jsonl"]
    assert r"caf\xe9.jsonl is not read: its name is not Unicode" in summary_before(plan)
    plan.ledger.add(start_row(plan))


# What cannot be


def test_a_source_that_is_generated_takes_no_incoming_data(project: Path) -> None:
    generated = "data.source={kind: generated, task: arithmetic}"
    with pytest.raises(InputError, match="cannot join a source of kind generated"):
        planned(project, "base", generated)


def test_a_source_that_is_not_there_yet_is_an_error_that_says_so(project: Path) -> None:
    (project / "base.jsonl").unlink()
    with pytest.raises(InputError, match="no source yet") as refused:
        planned(project, incoming="")
    assert "the head of night.yaml may say how" in str(refused.value)


def test_a_missing_folder_is_an_error(project: Path) -> None:
    for name in ("/nowhere", "incomming"):
        with pytest.raises(InputError, match="no folder for incoming data"):
            planned(project, incoming=name)


def test_a_folder_that_git_takes_for_code_is_refused(project: Path) -> None:
    (project / "mine").mkdir()
    with pytest.raises(InputError, match="belongs to the code") as refused:
        planned(project, incoming="mine")
    assert "echo '/mine/' >> .gitignore" in str(refused.value)


def test_without_a_folder_what_joined_is_left_out_and_that_is_said(project: Path) -> None:
    arrives("a.jsonl", lines("one"))
    planned(project)
    plan = planned(project, incoming="")
    assert source(plan) == project / "base.jsonl"
    assert "the rows of 1 file that joined are left out" in " ".join(summary_before(plan))


def test_the_folder_may_be_emptied_once_its_files_have_joined(project: Path) -> None:
    path = arrives("a.jsonl", lines("one"))
    first = planned(project)
    end(first)
    path.unlink()
    assert planned(project).workspace.run_id == first.workspace.run_id
    source(first).unlink()
    assert questions(planned(project))[2:] == ["one"]


def test_a_file_of_which_nothing_is_left_is_an_error_that_names_it(project: Path) -> None:
    path = arrives("a.jsonl", lines("one"))
    first = planned(project)
    end(first)
    path.unlink()
    first.ledger.part(first.files[0].sha256).unlink()
    planned(project)  # what was made of it is there
    source(first).unlink()
    with pytest.raises(InputError, match=r"a file that was trained on is gone: a\.jsonl"):
        planned(project)
    arrives("found-again.jsonl", lines("one"))
    assert questions(planned(project))[2:] == ["one"]


def test_joined_files_do_not_pile_up(project: Path) -> None:
    for number in range(6):
        arrives(f"{number}.jsonl", lines(f"new {number}"))
        plan = planned(project)
    assert len(list(source(plan).parent.glob("*.jsonl"))) == joining.KEPT
    assert len(questions(plan)) == 8


# Trust


def test_who_vouches_for_every_file_vouches_for_all_of_them_together(project: Path) -> None:
    digests = [sha256_file(arrives("a.jsonl", lines("one"))), sha256_file(Path("base.jsonl"))]
    plan = planned(project, "base", f"data.trusted={json.dumps(digests)}")
    assert sha256_file(source(plan)) in plan.workspace.settings.data.trusted
    doubted = planned(project, "base", f"data.trusted={json.dumps(digests[1:])}")
    assert sha256_file(source(doubted)) not in doubted.workspace.settings.data.trusted
    assert "a.jsonl" in doubted.remarks[0]


# The champion


def promoted(project: Path, value: float = 1.0, policy: Policy | None = None) -> str:
    """Make a checkpoint the champion, by the project's policy or by another; returns its digest."""
    store = project_store(project, planned(project).workspace.settings)
    return approve(store, propose(store, value), under=policy or load_policy(project)).digest


def test_the_result_is_compared_with_the_champion_wherever_it_starts(project: Path) -> None:
    digest = promoted(project)
    plan = planned(project)
    champion = plan.workspace.settings.evaluation.champion
    assert champion is not None
    assert (champion.sha256, plan.start) == (digest, "the base")
    assert plan.workspace.settings.policy.model.kind == "tiny"


def test_a_start_from_the_champion_takes_its_checkpoint_and_no_supervised_stage(project: Path) -> None:
    digest = promoted(project)
    plan = planned(project, "champion")
    settings = plan.workspace.settings
    assert settings.policy.model.sha256 == digest  # type: ignore[union-attr]
    assert settings.sft.steps == 0
    name = f"the champion {digest[:12]}"
    assert summary_before(plan)[-1] == f"starts from {name}, compared with {name}"


def test_without_a_champion_the_start_is_the_base_and_that_is_said(project: Path) -> None:
    plan = planned(project, "champion")
    assert plan.workspace.settings.sft.steps > 0
    said = "starts from the base"
    assert summary_before(plan)[1:] == [f"there is no champion yet: the run {said}", said]


# Nothing new


def test_a_night_that_was_is_not_repeated(project: Path) -> None:
    assert planned(project).previous is None
    end(planned(project))
    earlier = planned(project).previous
    assert earlier is not None
    assert earlier.run_id == planned(project).workspace.run_id


@pytest.mark.parametrize("change", ["data", "settings", "code", "champion"])
def test_a_night_is_new_when_anything_it_depends_on_is(project: Path, change: str) -> None:
    end(planned(project))
    overrides = ()
    match change:
        case "data":
            arrives("a.jsonl", lines("one"))
        case "settings":
            overrides = ("seed=3",)
        case "code":
            (project / "code.py").write_text("x = 1\n", encoding="utf-8")
        case "champion":
            promoted(project)
    assert planned(project, "base", *overrides).previous is None


@pytest.mark.parametrize("start", ["base", "champion"])
@pytest.mark.parametrize("with_champion", [False, True])
def test_a_result_that_became_the_champion_makes_nothing_new(project: Path, start: Start, with_champion: bool) -> None:
    if with_champion:
        promoted(project, 1.0)
    plan = planned(project, start)
    end(plan, promoted(project, 2.0))
    again = planned(project, start)
    assert again.previous is not None
    assert unchanged_summary(again, again.previous).endswith(", the champion by now)")


@pytest.mark.slow
def test_a_start_from_another_champion_is_new_and_so_is_another_start(project: Path) -> None:
    promoted(project, 1.0)
    end(planned(project, "champion"))
    assert planned(project, "champion").previous is not None
    assert planned(project, "base").previous is None
    promoted(project, 2.0)
    assert planned(project, "champion").previous is None


def test_a_champion_that_the_configuration_names_is_a_setting_as_any_other(project: Path) -> None:
    for name in ("c1", "c2"):
        write_json(project / f"incoming/{name}/config.json", {"name": name})
    one, two = (f"evaluation.champion={{path: incoming/{name}}}" for name in ("c1", "c2"))
    end(planned(project, "base", one, incoming=""))
    assert planned(project, "base", one, incoming="").previous is not None
    assert planned(project, "base", two, incoming="").previous is None
    assert planned(project, "base", incoming="").previous is None


def test_a_night_without_a_candidate_against_a_champion_that_is_gone_is_new(project: Path) -> None:
    promoted(project)
    end(planned(project))
    shutil.rmtree(project / "registry")
    assert planned(project).previous is None


# A night that is tried again


def test_a_retry_goes_on_with_the_run_that_it_began_and_notes_what_that_was_trained_on(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import nightly as module
    from flows.run.workspace import Outcome

    runs: list[str] = []

    def conduct(workspace: Workspace, *, fresh: bool) -> Outcome:
        with workspace.held():
            runs.append(workspace.run_id)
        if len(runs) == 1:
            raise KeyboardInterrupt
        return Outcome(workspace.run_id, str(workspace.root), "c" * 64)

    monkeypatch.setattr(module, "run_workspace", conduct)
    monkeypatch.setattr(module, "run_of_flow_run", lambda *_: runs[0] if runs else "")
    monkeypatch.setattr(module, "get_run_logger", lambda: logging.getLogger("night"))
    monkeypatch.setattr(module, "create_markdown_artifact", lambda *_, **__: None)
    arrives("a.jsonl", lines("one"))
    with pytest.raises(KeyboardInterrupt):
        module.nightly.fn(str(CONFIG), "incoming")
    (ended_with,) = Ledger(project, "night").seen()
    arrives("b.jsonl", lines("two"))
    ended = module.nightly.fn(str(CONFIG), "incoming")
    assert runs[0] == runs[1] == ended.outcome.run_id
    assert "a.jsonl: 1 row joined" in ended.lines
    assert [row.files for row in Ledger(project, "night").finished_runs()] == [[ended_with.sha256]]
    assert names(planned(project).joined) == ["b.jsonl"]


def test_a_run_that_is_continued_settles_the_files_that_it_was_trained_on_and_no_others(project: Path) -> None:
    arrives("a.jsonl", lines("one"))
    interrupted = start_row(planned(project))
    Path("incoming/a.jsonl").unlink()
    arrives("b.jsonl", "not yet corrected")
    ledger = planned(project).ledger
    ledger.add(interrupted.ended(None, "the gate failed"))
    assert ledger.settled == set(interrupted.files or ())
    Path("incoming/b.jsonl").unlink()
    assert questions(planned(project)) == ["base 1", "base 2"]


def test_files_of_a_run_that_resume_brought_to_its_end_have_joined_permanently(project: Path) -> None:
    arrives("a.jsonl", lines("one"))
    plan = planned(project)
    plan.ledger.add(start_row(plan))
    with plan.workspace.lock():
        plan.workspace.ensure()
    for state, joined in (("stopped", ["a.jsonl"]), ("no candidate", [])):
        outcome = OutcomeRecord.model_validate({"state": state, "reason": "the gate failed"})
        write_record(plan.workspace.root, new_record(plan.workspace, None).model_copy(update={"outcome": outcome}))
        assert names(planned(project).joined) == joined
    Path("incoming/a.jsonl").unlink()
    assert questions(planned(project)) == ["base 1", "base 2", "one"]
    assert [row.run_id for row in plan.ledger.finished_runs()] == [plan.workspace.run_id]


# The ledger


def test_the_files_of_runs_that_an_earlier_version_recorded_stay_settled(project: Path) -> None:
    arrives("a.jsonl", lines("one"))
    ledger = planned(project).ledger
    row = {"run_id": "r", "key": "k", "champion": None, "candidate": None, "reason": "", "seen": 1, "at": "2026"}
    append_line(ledger.folder / "nights.jsonl", row)
    arrives("b.jsonl", lines("two"))
    assert names(planned(project).joined) == ["b.jsonl"]
    Path("incoming/a.jsonl").unlink()
    assert names(planned(project).files) == ["a.jsonl", "b.jsonl"]


def test_what_a_crash_left_of_a_line_is_cut_off(project: Path) -> None:
    arrives("a.jsonl", lines("one"))
    path = planned(project).ledger.folder / "seen.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write('{"sha256": "12')
    arrives("b.jsonl", lines("two"))
    assert names(planned(project).files) == ["a.jsonl", "b.jsonl"]


def test_a_ledger_that_somebody_edited_is_an_error(project: Path) -> None:
    arrives("a.jsonl", lines("one"))
    ledger = planned(project).ledger
    (ledger.folder / "seen.jsonl").write_text('{"file": "a"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="not a row of this log"):
        planned(project)


def test_one_night_at_a_time(project: Path) -> None:
    program = (
        "import pathlib, sys, time; from flows.retraining.ledger import Ledger\n"
        "with Ledger(pathlib.Path(sys.argv[1]), 'night').held(): print('held', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", program, str(project)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(InputError, match=f"a night is at work in process {other.pid}"),
            Ledger(project, "night").held(),
        ):
            pass
    finally:
        other.kill()
        other.wait()
    with Ledger(project, "night").held():
        pass


def test_file_names_are_shown_and_not_acted_upon() -> None:
    assert markdown("Night", ["<img src=x>.jsonl [a](b)\nno"]) == "# Night\n\n- \\<img src=x\\>.jsonl \\[a\\](b) no\n"


@pytest.mark.parametrize("start", ["base", "champion"])
def test_a_champion_whose_signature_does_not_hold_is_neither_started_from_nor_compared_with(
    project: Path, start: Start
) -> None:
    digest = promoted(project)
    shutil.rmtree(project / "registry/objects/signatures" / digest)
    with pytest.raises(InputError, match="no signature of a trusted key"):
        planned(project, start)


@pytest.mark.parametrize("start", ["base", "champion"])
def test_a_champion_by_a_policy_that_the_project_never_had_is_neither_started_from_nor_compared_with(
    project: Path, start: Start
) -> None:
    own = load_policy(project)
    promoted(project, policy=replace(own, settings=own.settings.model_copy(update={"valid_days": 99})))
    with pytest.raises(InputError, match="cannot be shown to have been approved"):
        planned(project, start)
