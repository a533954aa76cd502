"""Which part is to blame: from experiments to one part, and from that to a repair, a return or a stop."""

from __future__ import annotations

from typing import Any

import pytest
from factories import settings
from test_health_ladder import watching
from test_training_sound import Verifier
from training_runs import watched

from components.config.judgement import Part
from components.health.diagnosis import Diagnosis, Experiments, diagnose
from components.health.responses import Plan, Responder, Saved
from components.health.responses.repairs import RELOADS, REPAIRS, Repairs, Situation
from components.health.responses.under_watch import HARM, IDLE, UNDER_WATCH, UnderWatch
from components.training import assembly
from components.types import Verdict

SECOND = {"audit": {"second": {"kind": "numeric", "marker": "#"}}}


@pytest.mark.parametrize(
    ("tried", "part", "server"),
    [
        ({}, "policy", -1),
        ({"again": 1.0}, "policy", -1),
        ({"broken": [("schedule", "4 prompts differ")]}, "schedule", -1),
        ({"golden": (3, 16)}, "verifier", -1),
        ({"mismatch": {0: 1e-6, 1: 0.2}, "mismatch_limit": 1e-4}, "sampler", 1),
        ({"mismatch": {-1: 1e-6}, "mismatch_limit": 1e-4}, "policy", -1),
        ({"again": 12.0}, "sampler", -1),
        ({"reversal": 6.0}, "learner", -1),
        ({"sudden": 100.0}, "learner", -1),
        ({"sudden": 3.0}, "policy", -1),
        ({"family": ("carry", 20.0)}, "data", -1),
        ({"again": 0.0, "golden": (1, 16), "family": ("carry", 20.0)}, "verifier", -1),
    ],
)
def test_what_was_tried_points_at_one_part(tried: dict[str, Any], part: str, server: int) -> None:
    found = diagnose(Experiments(**tried))
    assert (found.part, found.server) == (part, server) and found.evidence


# Repairs


def test_a_part_without_a_repair_has_none() -> None:
    assert Repairs().of("learner", settings(), Situation()) is None
    assert "policy" not in REPAIRS


def test_prompts_are_drawn_by_the_second_copy_once_and_then_a_suspected_family_is_withheld() -> None:
    done = Repairs()
    found = [done.of("data", settings(), Situation(family="odd")) for _ in range(3)]
    assert [change and change.knob for change in found] == ["redraw", "withhold", None]
    assert done.redrawn and done.withheld == {"odd"}


def test_a_server_is_excluded_while_another_one_is_left_and_else_weights_are_handed_over_again() -> None:
    done = Repairs()
    knobs = [done.of("sampler", settings(), Situation(server=n, servers=n + 1)) for n in (1, 0, 0, 0)]
    assert [change and change.knob for change in knobs] == ["exclude", *["reload"] * RELOADS, None]
    assert done.excluded == {1}


@pytest.mark.parametrize(("agrees", "repaired"), [(None, False), (0.5, False), (1.0, True)])
def test_the_second_verifier_judges_where_it_judges_what_is_known_as_it_is_known(agrees, repaired) -> None:
    change = Repairs().of("verifier", settings(**SECOND), Situation(second_agrees=agrees))
    assert (change is not None) == repaired


def test_of_three_servers_two_may_be_excluded() -> None:
    done = Repairs()
    found = [done.of("sampler", settings(), Situation(server=n, servers=3 - n)) for n in (0, 1)]
    assert [change and change.knob for change in found] == ["exclude", "exclude"] and done.excluded == {0, 1}


def test_repairs_outlive_a_restart() -> None:
    done, again = Repairs(), Repairs()
    done.of("sampler", settings(), Situation(server=1, servers=2))
    done.of("data", settings(), Situation(family="odd"))
    again.load_state_dict(done.state_dict())
    assert again == done


# What the ladder makes of a diagnosis

HALVE = {"knob": "learner.lr", "times": 0.5}
RULES = {"fell": {"when": "entropy < 1", "why": "fell", "level": "rollback", "part": "policy", "action": [HALVE]}}
SAVED = [Saved(0, 0, healthy=True), Saved(8, 8, healthy=True)]


def acted(part: str | None, one: Responder | None = None, **known: Any) -> Plan:
    one = one or Responder(settings(health={"rules": RULES}, **SECOND))
    said = [Verdict("fell", "rollback", 10, "fell", clean=9)]
    diagnosis = None if part is None else Diagnosis(part, ("shown",))  # type: ignore[arg-type]
    return one.respond(said, watching(one), SAVED, (), 20, Situation(**known), diagnosis)


@pytest.mark.parametrize(
    ("part", "known", "level", "knobs"),
    [
        (None, {}, "rollback", ["learner.lr"]),
        ("policy", {}, "rollback", ["learner.lr"]),
        ("settings", {}, "rollback", ["reset"]),
        ("data", {}, "rollback", ["redraw"]),
        ("learner", {}, "rollback", []),
        ("verifier", {"second_agrees": 1.0}, "rollback", ["audit.second_judges"]),
        ("verifier", {"second_agrees": 0.1}, "stop", []),
        ("sampler", {"server": 1, "servers": 2}, "rollback", ["exclude"]),
    ],
)
def test_a_knob_is_turned_only_where_the_policy_is_to_blame(part, known, level, knobs) -> None:
    plan = acted(part, **known)
    (response,) = plan.responses
    assert (response.level, [change.knob for change in response.changes]) == (level, knobs)
    assert response.part == (part or "policy") and plan.back_to == SAVED[1]
    assert response.found == (() if part is None else ("shown",))


def test_a_rule_that_points_at_a_part_without_a_repair_turns_its_own_knob() -> None:
    one = Responder(settings(health={"rules": {"fell": {**RULES["fell"], "part": "learner"}}}))
    (response,) = acted(None, one).responses
    assert (response.level, [change.knob for change in response.changes]) == ("rollback", ["learner.lr"])


AT_ONCE = {"responses": {"go_on": False}}


def test_a_learner_that_breaks_again_and_again_ends_the_run() -> None:
    one = Responder(settings(health={"rules": RULES, **AT_ONCE}))
    levels = [acted("learner", one).responses[0].level for _ in range(5)]
    assert levels == ["rollback"] * 3 + ["stop"] * 2 and one.blamed == 0


def test_a_run_that_has_no_return_left_changes_nothing_more() -> None:
    one = Responder(settings(health={"rules": RULES, "responses": {"returns": 0, "go_on": False}}, **SECOND))
    (response,) = acted("data", one).responses
    assert (response.level, response.changes, one.repairs.redrawn) == ("stop", (), False)


# Under watch

BROKEN = {
    "odd": {"when": "entropy < 1", "why": "odd", "level": "stop", "part": "learner"},
    "torn": {"when": "batch_torn > 0", "why": "torn", "level": "stop", "part": "learner"},
    "judge": {"when": "entropy < 1", "why": "judge", "level": "stop", "part": "verifier"},
    "probe": {"when": "entropy < 1", "why": "probe", "level": "stop", "part": "policy"},
    "worn": {"when": "entropy < 1", "why": "worn", "level": "stop", "part": "data"},
    **RULES,
}


def said(one: Responder, *rules: str, step: int = 10, part: Part | None = None, **known: Any) -> Plan:
    """What is done about rules that fire at a step, where a diagnosis names a part."""
    verdicts = [Verdict(name, BROKEN[name]["level"], step, name, {"entropy": [0.5]}, clean=step - 1) for name in rules]
    diagnosis = None if part is None else Diagnosis(part, ("shown",))
    return one.respond(verdicts, watching(one), SAVED, (), 20, Situation(step=step, **known), diagnosis)


def broken(**limits: Any) -> Responder:
    return Responder(settings(health={"rules": BROKEN, "responses": limits}))


def test_a_fault_that_nothing_repairs_is_watched_and_the_run_stops_once_held_out_accuracy_falls() -> None:
    one = broken()
    (response,) = said(one, "odd").responses
    assert (response.level, response.part, response.changes) == ("intervene", "learner", (UNDER_WATCH,))
    assert said(one, "odd", step=11).responses[0].level == "warn"
    assert not said(one, step=12, fall=HARM - 0.1).responses
    plan = said(one, "odd", step=13, fall=HARM)
    assert (plan.stopped_by, plan.back_to) == ("odd", SAVED[1])
    stop, noted = plan.responses
    assert (stop.level, stop.part, stop.step, noted.level) == ("stop", "learner", 13, "warn")
    assert "fallen" in stop.found[0]


def test_a_learner_is_watched_after_its_returns() -> None:
    one = Responder(settings(health={"rules": {"fell": {**RULES["fell"], "part": "learner"}}}))
    assert [acted("learner", one).responses[0].level for _ in range(5)] == ["rollback"] * 3 + ["intervene", "warn"]


def test_a_run_of_which_nothing_is_learned_any_more_stops() -> None:
    one = broken()
    said(one, "odd")
    plans = [said(one, step=11 + n, learned=False) for n in range(IDLE)]
    assert [plan.stopped_by for plan in plans] == [None] * (IDLE - 1) + ["odd"]


@pytest.mark.parametrize(
    ("rule", "known"),
    [
        ("judge", {}),
        ("worn", {}),
        ("probe", {"part": "learner"}),
        ("odd", {"trains": False}),
        ("odd", {"sound": False}),
        ("odd", {"fall": HARM}),
    ],
)
def test_what_a_run_does_not_go_on_with(rule, known) -> None:
    one = broken()
    assert said(one, rule, **known).stopped_by == rule and not one.under_watch.verdicts


def test_updates_of_the_wrong_sign_end_a_watch() -> None:
    one = broken()
    said(one, "odd")
    assert said(one, step=11, sound=False).stopped_by == "odd"


@pytest.mark.parametrize("rule", ["fell", "probe"])
def test_what_a_rule_on_the_policy_says_under_watch_is_harm(rule) -> None:
    one = broken()
    said(one, "odd")
    assert said(one, rule, step=12, part="learner").stopped_by == rule


def test_a_watch_that_begins_leaves_graver_verdicts_of_the_step_alone() -> None:
    assert said(broken(), "odd", "judge").stopped_by == "judge"


def test_a_watch_ends_when_its_rule_has_not_held_for_some_steps_and_is_not_revived() -> None:
    watch = UnderWatch()
    watch.begin("learner", Verdict("odd", "stop", 10, "odd"))
    seen = []
    for step, held in ((12, 5.0), (13, 0.0), (31, 0.0), (32, 1.0), (33, 1.0)):
        watch.look(step, {"odd": held}, learned=True)
        seen.append(watch.parts(step))
    assert seen == [["learner"]] * 3 + [[]] * 2


def test_of_two_watches_the_return_is_to_before_the_first() -> None:
    watch = UnderWatch()
    watch.begin("data", Verdict("worn", "rollback", 12, "worn", clean=11))
    watch.begin("learner", Verdict("odd", "stop", 10, "odd", clean=4))
    assert watch.parts(13) == ["learner", "data"]


def test_torn_batches_are_taken_where_they_are_what_is_watched() -> None:
    one, other = UnderWatch(), UnderWatch()
    one.begin("learner", Verdict("torn", "stop", 10, "torn", {"batch_torn": [1.0]}))
    other.begin("learner", Verdict("odd", "stop", 10, "odd", {"entropy": [0.5]}))
    assert (one.torn(11), other.torn(11), one.torn(40)) == (True, False, False)


def test_what_is_under_watch_outlives_a_restart() -> None:
    one, again = broken(), broken()
    said(one, "odd")
    said(one, step=11, learned=False)
    again.load_state_dict(one.state_dict())
    assert again.under_watch == one.under_watch and again.under_watch.parts(11) == ["learner"]


# In a run


def test_a_verifier_that_breaks_is_diagnosed_before_the_policy_is_blamed(tmp_path, monkeypatch) -> None:
    """Held-out accuracy falls to nothing; the golden items say why, and no knob is turned."""
    judge = Verifier()
    monkeypatch.setattr(assembly, "Scorer", lambda *_: judge)

    class Breaking:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def next(self, count: int) -> Any:
            judge.broken = judge.broken or self.inner.state_dict()["drawn"] >= 16
            return self.inner.next(count)

    rules = {"fell": {**RULES["fell"], "when": "last(dev_pass_at_1) < 0.5 * max(dev_pass_at_1)"}}
    chosen = settings(
        health={"rules": rules},
        schedule={"kind": "uniform"},
        rollout={"dynamic_sampling": None},
        train={"steps": 9, "eval_every": 2, "eval_prompts": 3, "eval_samples": 8},
    )
    state, records = watched(tmp_path, chosen, wrap_schedule=Breaking)
    (found,) = [record.notes["diagnosis"] for record in records if "diagnosis" in record.notes]
    assert found["part"] == "verifier" and "judged again" in found["evidence"][0]
    assert state.stopped_by == "fell" and state.responder.settings == state.responder.started
