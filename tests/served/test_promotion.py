"""The deployment `promote`: a person is asked, answers in the form or at a terminal, and what was decided happens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from components.registry.keys import new_key, public_text, write_key
from tests.served.asking import (
    BUSY,
    KEYS,
    Question,
    announce,
    champion,
    decisions,
    make_candidate,
    policy,
    questions,
)
from tests.served.service import Service, evenkeel, wait_for


def test_the_event_of_a_candidate_asks_a_person_and_an_approval_makes_it_the_champion(
    service: Service, project: Path
) -> None:
    time.sleep(5)  # a server that has just got its automations needs a moment to know them
    digest = make_candidate(project, 0.1)
    announce(service, digest)
    (asked,) = wait_for(lambda: questions(service, digest), BUSY)
    asked.suspended()
    assert asked.form["required"] == ["decision", "by"]
    assert "default" not in asked.form["properties"]["decision"]
    assert not asked.form["additionalProperties"]
    assert f"evenkeel approve {digest[:12]} --by YOUR-NAME" in asked.shown
    assert "- **held-out gain**: pass" in asked.shown
    assert service.artifacts(asked.id)["promotion-request"]["data"] == asked.shown
    assert champion(project) is None

    assert asked.answer(decision="approve", by=" Ada ", reason="It is better.")["status"] == "ACCEPT"
    run = asked.ended("Promoted")
    assert run["state"]["message"] == "promoted by Ada (record 1): It is better."
    assert champion(project) == digest
    (record,) = decisions(project)
    assert (record.by, record.reason, record.base) == ("Ada", "It is better.", 0)


def test_a_rejection_is_recorded_and_ends_the_run(service: Service, project: Path) -> None:
    before = champion(project)
    digest = make_candidate(project, 0.2)
    asked = Question.about(service, digest[:12]).suspended()
    asked.answer(decision="reject", by="Grace", reason="It forgets carries.")
    asked.ended("Rejected")
    record = decisions(project)[-1]
    assert (record.outcome, record.by, record.reason) == ("rejected", "Grace", "It forgets carries.")
    assert champion(project) == before
    again = Question.about(service, digest).ended("Decided")
    assert again["state"]["message"] == f"rejected by Grace (record {record.number}): It forgets carries."


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "'decision' is a required property"),
        ({"by": "Ada"}, "'decision' is a required property"),
        ({"decision": "approve"}, "'by' is a required property"),
        ({"decision": "approve", "by": "  "}, "does not match"),
        ({"decision": "approve", "by": ""}, "should be non-empty"),
        ({"decision": "yes", "by": "Ada"}, "'yes' is not one of"),
        ({"decision": None, "by": "Ada"}, "is not"),
        ({"decision": "approve", "by": "Ada", "digest": "0" * 64}, "Additional properties are not allowed"),
    ],
)
def test_a_form_that_decides_nothing_is_refused_by_the_server(
    service: Service, waiting: Question, values: dict[str, Any], reason: str
) -> None:
    said = waiting.answer(**values)
    assert said["status"] == "REJECT", "with HTTP 200, as Prefect does"
    assert reason in said["details"]["reason"]
    assert service.flow_run(waiting.id)["state_name"] == "Suspended"
    assert waiting.asked == 1


@pytest.fixture(scope="module")
def waiting(service: Service, project: Path) -> Question:
    """A question without an answer."""
    return Question.about(service, make_candidate(project, 0.3)).suspended()


def test_a_bare_resumption_decides_nothing(service: Service, waiting: Question) -> None:
    assert service.post(f"/flow_runs/{waiting.id}/resume")["status"] == "REJECT"
    assert service.flow_run(waiting.id)["state_name"] == "Suspended"


def test_a_run_that_goes_on_without_an_answer_asks_again(service: Service, project: Path) -> None:
    before = champion(project)
    digest = make_candidate(project, 0.4)
    asked = Question.about(service, digest).suspended()
    assert asked.go_on() == "ACCEPT"
    asked.suspended(2)
    assert champion(project) == before
    asked.answer(decision="approve", by="Ada")
    asked.ended("Promoted")
    assert champion(project) == digest


def test_a_name_that_hides_something_is_no_name_and_it_is_asked_again_with_the_reason(
    service: Service, project: Path
) -> None:
    asked = Question.about(service, make_candidate(project, 0.5)).suspended()
    assert asked.answer(decision="approve", by="A\u200bda")["status"] == "ACCEPT", "no schema can say that"
    asked.suspended(2)
    assert "The answer was not taken" in asked.shown
    asked.answer(decision="reject", by="Ada", reason="done with it")
    asked.ended("Rejected")


def test_two_events_give_one_question_and_a_second_run_ends_at_once(service: Service, project: Path) -> None:
    digest = make_candidate(project, 0.6)
    announce(service, digest)
    announce(service, digest)
    first, second = wait_for(lambda: (found := questions(service, digest)) and len(found) == 2 and found, BUSY)
    assert second.ended("Asked")["state"]["message"].endswith(f"asks about {digest[:12]} already")
    first.suspended()
    Question.about(service, digest[:10]).ended("Asked")
    first.answer(decision="approve", by="Ada")
    first.ended("Promoted")


def test_a_decision_at_a_terminal_ends_the_question(service: Service, project: Path) -> None:
    digest = make_candidate(project, 0.7)
    asked = Question.about(service, digest).suspended()
    done = evenkeel(project, "approve", digest[:12], "--by", "Ada")
    assert done.returncode == 0, done.stderr
    assert champion(project) == digest
    asked.ended("Decided")
    assert asked.asked == 1


def test_a_policy_that_changes_while_the_question_waits_is_asked_about_again(service: Service, project: Path) -> None:
    digest = make_candidate(project, 0.8)
    before = champion(project)
    asked = Question.about(service, digest).suspended()
    with policy(project, "Ada", valid_days=3):
        asked.answer(decision="approve", by="Ada")
        asked.suspended(2)
        assert "does not count: the policy was another when it was given" in asked.shown
        assert champion(project) == before
        asked.answer(decision="approve", by="Ada")
        asked.ended("Promoted")
    assert champion(project) == digest


def test_a_champion_that_changes_while_the_question_waits_is_asked_about_again(service: Service, project: Path) -> None:
    slow, quick = make_candidate(project, 0.9), make_candidate(project, 1.0)
    asked = Question.about(service, slow).suspended()
    assert evenkeel(project, "approve", quick, "--by", "Ada").returncode == 0
    asked.answer(decision="approve", by="Grace")
    asked.suspended(2)
    assert champion(project) == quick
    assert f"Present champion: {quick[:12]}" in asked.shown
    assert "the champion stood on" in asked.shown
    asked.answer(decision="approve", by="Grace")
    asked.ended("Promoted")
    assert champion(project) == slow


def test_two_of_three_sign_and_each_counts_once(service: Service, project: Path) -> None:
    digest, other = make_candidate(project, 1.1), make_candidate(project, 1.2)
    keys = {name: new_key() for name in ("ada", "edsger", "carol")}
    approvers = {name: {"key": public_text(key)} for name, key in keys.items()}
    folder = project / KEYS
    for name, key in keys.items():
        write_key(key, folder / f"{name}.pem")

    def signed(name: str, about: str) -> str:
        made = evenkeel(project, "approve", about, "--by", name, "--key", str(folder / f"{name}.pem"), "--print")
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    with policy(project, "ada", "edsger", approvers=approvers, promote={"approvals": 2, "signed": True}):
        asked = Question.about(service, digest).suspended()
        assert "2 signed approvals needed" in asked.shown
        asked.answer(decision="approve", by="ada")
        asked.suspended(2)
        assert "the policy asks for a signature" in asked.shown
        asked.answer(decision="approve", by="ada", signed_approval=signed("ada", other))
        asked.suspended(3)
        assert "it is about the checkpoint" in asked.shown
        asked.answer(decision="approve", by="ada", signed_approval=signed("ada", digest))
        asked.suspended(4)
        assert "1 more signed approval needed; so far: ada" in asked.shown
        asked.answer(decision="approve", by="ada", signed_approval=signed("ada", digest))
        asked.suspended(5)
        assert "the same approver is counted already" in asked.shown
        asked.answer(decision="approve", by="edsger", signed_approval=signed("edsger", digest))
        asked.ended("Promoted")
    assert champion(project) == digest
    assert {one.statement.by for one in decisions(project)[-1].approvals} == {"ada", "edsger"}


def test_the_janitor_asks_about_candidates_whose_event_was_lost_and_about_each_once(
    service: Service, project: Path, waiting: Question
) -> None:
    digest = make_candidate(project, 1.3)
    for _ in range(2):
        done = evenkeel(project, "janitor")
        assert done.returncode == 0
        assert "left alone" not in done.stdout
    (asked,) = questions(service, digest)
    asked.suspended()
    assert evenkeel(project, "janitor").returncode == 0
    assert len(questions(service, digest)) == 1
    asked.answer(decision="reject", by="Ada")
    asked.ended("Rejected")
    assert evenkeel(project, "janitor").returncode == 0
    assert len(questions(service, digest)) == 1
    # The janitor renews a question that was overtaken by another champion; under which policy is for other tests.
    wait_for(lambda: service.flow_run(waiting.id)["state_name"] == "Suspended", BUSY)


def test_what_the_policy_does_not_let_pass_is_refused_with_the_checks(service: Service, project: Path) -> None:
    digest = make_candidate(project, 1.4)
    with policy(project, "Ada", gate={"min_gain": 0.9}):
        asked = Question.about(service, digest)
        run = asked.ended("Refused")
    assert "held-out gain" in run["state"]["message"]
    assert "the lower end must exceed +90.0" in service.artifacts(asked.id)["promotion-request"]["data"]


def test_where_the_gate_is_in_doubt_a_person_has_to_say_why(service: Service, project: Path) -> None:
    asked = Question.about(service, make_candidate(project, 1.5, doubt="we know better")).suspended()
    assert "we know better" in asked.shown
    assert asked.answer(decision="approve", by="Ada")["status"] == "REJECT"
    asked.answer(decision="approve", by="Ada", reason="I looked at its samples.")
    asked.ended("Promoted")


def test_a_question_outlives_its_worker_and_its_server(service: Service, project: Path) -> None:
    digest = make_candidate(project, 1.6)
    asked = Question.about(service, digest).suspended()
    service.part("worker").kill()
    service.part("server").kill()
    wait_for(lambda: "server is back" in service.said() and "worker is back" in service.said(), 240, service.said)
    assert service.flow_run(asked.id)["state_name"] == "Suspended"
    asked.answer(decision="approve", by="Ada")
    asked.ended("Promoted")
    assert champion(project) == digest


def test_an_answer_outlives_the_worker_that_took_it(service: Service, project: Path) -> None:
    digest = make_candidate(project, 1.7)
    asked = Question.about(service, digest).suspended()
    asked.answer(decision="approve", by="Ada")
    service.wait(asked.id, "RUNNING", "COMPLETED", seconds=BUSY)
    service.part("worker").kill()
    run = service.wait(asked.id, seconds=BUSY)
    assert run["state_name"] in ("Promoted", "Decided")
    assert champion(project) == digest
    (record,) = [record for record in decisions(project) if record.digest == digest]
    assert [one.statement.by for one in record.approvals] == ["Ada"]


def test_an_answer_outlives_a_policy_that_cannot_be_read(service: Service, project: Path) -> None:
    digest = make_candidate(project, 1.8)
    asked = Question.about(service, digest).suspended()
    with policy(project, promote={"approvals": "one"}):
        asked.answer(decision="approve", by="Ada", reason="It is better.")
        asked.ended("Failed")
    assert evenkeel(project, "janitor").returncode == 0
    wait_for(lambda: champion(project) == digest, BUSY)
    assert decisions(project)[-1].reason == "It is better."
    assert asked.asked == 1
    assert len(questions(service, digest)) == 1


def test_a_question_that_waited_all_the_time_still_waits(service: Service, waiting: Question) -> None:
    """Minutes, in which the server looks for runs without a sign of life, and the janitor may resume it."""
    wait_for(lambda: service.flow_run(waiting.id)["state_name"] == "Suspended", BUSY)
    assert "Crashed" not in service.states(waiting.id)
