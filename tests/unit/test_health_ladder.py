"""What a verdict leads to: knobs within bounds, budgets that end, and the outcomes of responses."""

from __future__ import annotations

import json
import math
from functools import reduce
from typing import Any

import pytest
from factories import settings
from hypothesis import example, given
from hypothesis import strategies as st

from components.config.judgement import ResponseSettings
from components.health.monitor import Monitor
from components.health.responses import KNOBS, Guard, Plan, Responder, Saved, healthiest
from components.health.responses.ladder import NOTHING_KNOWN
from components.health.responses.repairs import Situation
from components.health.responses.under_watch import UNDER_WATCH
from components.health.sequential import Count
from components.types import Change, Outcome, Response, StepRecord, Verdict

START = Saved(0, 0, healthy=True)
HALVE = {"knob": "learner.lr", "times": 0.5}
RULES: dict[str, dict[str, Any]] = {
    "low": {"level": "intervene", "escalate": True, "action": [HALVE, {"knob": "objective.ratio.high", "to": 0.3}]},
    "high": {"level": "intervene", "escalate": True, "action": [HALVE]},
    "mild": {"level": "intervene", "action": [HALVE]},
    "bad": {"level": "rollback", "action": [HALVE]},
    "worse": {"level": "rollback"},
    "over": {"level": "stop"},
    "poison": {"level": "intervene", "escalate": True, "action": [{"knob": "quarantine"}]},
    "hm": {"level": "warn"},
    "sick": {"level": "rollback", "part": "policy", "action": [HALVE]},
    "judge": {"level": "intervene", "part": "verifier", "action": [{"knob": "audit.agreement", "to": 1}]},
    "numbers": {"level": "rollback", "part": "learner"},
}
LR = 1e-2


def responder(**limits: Any) -> Responder:
    rules = {name: {"when": f"entropy < {i}", "why": name, **rule} for i, (name, rule) in enumerate(RULES.items())}
    return Responder(settings(health={"rules": rules, "responses": limits}))


def verdict(rule: str, step: int = 10, clean: int | None = None) -> Verdict:
    return Verdict(rule, RULES[rule]["level"], step, rule, {"entropy": [0.5]}, step - 1 if clean is None else clean)


def watching(one: Responder, *entropies: float) -> Monitor:
    monitor = Monitor(one.started.health.rules)
    for step, entropy in enumerate(entropies or (9.0,)):
        monitor.observe(StepRecord(step, {"entropy": entropy}))
    return monitor


def act(one: Responder, *rules: str, step: int = 10, saved: Any = (START,), batch: Any = (), prompts: int = 20) -> Plan:
    said = [verdict(rule, step) for rule in rules]
    return one.respond(said, watching(one), saved, batch, prompts)


def restarted(one: Responder, **limits: Any) -> Responder:
    """Another one that goes on from its state."""
    again = responder(**limits)
    again.load_state_dict(json.loads(json.dumps(one.state_dict())))
    return again


def levels(plan: Plan) -> list[tuple[str, str]]:
    return [(response.rule, response.level) for response in plan.responses]


# The ladder


def test_no_verdict_no_response():
    assert act(responder()) == Plan()


def test_a_rule_goes_from_action_to_action_then_back_then_stops():
    one, at_it = responder(per_rule=2, rollbacks=2), "objective.ratio.high is 0.3 already"
    done = [act(one, "low", step=step) for step in range(10, 15)]
    assert [plan.responses[0].level for plan in done] == ["intervene", "intervene", "rollback", "rollback", "stop"]
    assert [change for plan in done for change in plan.responses[0].changes] == [
        Change("learner.lr", LR, LR / 2),
        Change("objective.ratio.high", 0.28, 0.3),
    ]
    back = f"back to step 0, with other seeds; {at_it}"
    assert [plan.responses[0].did for plan in done] == ["", "", back, back, "stopped; the policy of step 0 is kept"]


def test_the_last_action_is_taken_again_and_what_cannot_be_changed_any_more_leads_further():
    one = responder(per_rule=9, interventions=9)
    found = [act(one, "high", step=step).responses[0] for step in range(10, 20)]
    assert [r.changes[0].after for r in found if r.level == "intervene"] == pytest.approx(
        [LR / 2, LR / 4, LR / 8, LR / 16, LR / 20]
    )
    assert [r.level for r in found[5:8]] == ["rollback", "rollback", "stop"]
    assert found[5].did == "back to step 0, with other seeds; learner.lr is 0.0005 already"


def test_all_rules_share_one_budget_of_interventions():
    one = responder(interventions=1, per_rule=5)
    assert levels(act(one, "low")) == [("low", "intervene")]
    assert levels(act(one, "high")) == [("high", "rollback")]


@pytest.mark.parametrize(("rule", "change"), [("bad", (Change("learner.lr", LR, LR / 2),)), ("worse", ())])
def test_a_rollback_changes_a_knob_where_the_rule_names_one(rule, change):
    (response,) = act(responder(), rule).responses
    assert (response.level, response.changes, response.back_to) == ("rollback", change, 0)


def test_without_a_checkpoint_to_go_back_to_a_rollback_is_a_stop():
    plan = act(responder(), "bad", saved=())
    assert (levels(plan), plan.back_to, plan.stopped_by) == ([("bad", "stop")], None, "bad")
    assert plan.responses[0].did == "stopped"


def test_a_stop_keeps_the_policy_of_the_last_healthy_checkpoint():
    saved = [START, Saved(4, 4, healthy=True), Saved(8, 8, healthy=False)]
    plan = act(responder(), "over", saved=saved)
    assert (plan.back_to, plan.stopped_by, plan.responses[0].back_to) == (saved[1], "over", 4)
    assert plan.responses[0].did == "stopped; the policy of step 4 is kept"


def test_only_the_gravest_verdict_is_acted_upon_and_the_others_are_noted():
    one = responder()
    plan = act(one, "hm", "low", "worse", "high")
    assert levels(plan) == [("worse", "rollback"), ("low", "warn"), ("high", "warn"), ("hm", "warn")]
    asked = ["rollback", "intervene", "intervene", "warn"]
    assert [(r.number, r.asked) for r in plan.responses] == list(enumerate(asked, 1))
    assert one.settings == one.started


def test_of_equally_grave_verdicts_the_first_rule_of_the_file_is_acted_upon():
    assert levels(act(responder(), "high", "low")) == [("high", "intervene"), ("low", "warn")]


@pytest.mark.parametrize("rule", list(RULES))
def test_with_responses_off_only_stop_acts(rule):
    one = responder(enabled=False)
    plan = act(one, rule, batch=("p001",))
    stopped = rule == "over"
    assert levels(plan) == [(rule, "stop" if stopped else "warn")]
    assert (plan.back_to, plan.stopped_by) == (None, "over" if stopped else None)
    assert (one.settings, one.quarantined, one.attempt) == (one.started, set(), 0)


@example([["low", "high", "numbers"], *[["numbers"]] * 3], [set()] * 40, 0, 1, 0, 0.0)
@given(
    st.lists(st.lists(st.sampled_from(list(RULES)), min_size=1, max_size=4, unique=True), max_size=40),
    st.lists(st.sets(st.integers(0, 19), max_size=4), min_size=40, max_size=40),
    st.integers(0, 4),
    st.integers(1, 3),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_whatever_is_said_the_ladder_ends_within_its_budgets(said, batches, interventions, per_rule, rollbacks, share):
    one = responder(interventions=interventions, per_rule=per_rule, rollbacks=rollbacks, quarantine=share)
    monitor, did, graves = watching(one), [], 0
    for step, rules in enumerate(said):
        batch = [f"p{i:03d}" for i in sorted(batches[step])]
        plan = one.respond([verdict(rule, step) for rule in rules], monitor, [START], batch, 20)
        did += plan.responses
        graves += not {"mild", "judge"} & set(rules) and any(rule != "hm" for rule in rules)
        if plan.stopped_by:
            break
    watched = [r.part for r in did if UNDER_WATCH in r.changes]  # goes on in place of a stop, and turns no knob
    assert len(watched) == len(set(watched))
    knobs = [r for r in did if r.level == "intervene" and r.changes and UNDER_WATCH not in r.changes]
    assert len(knobs) <= interventions
    assert max([sum(r.rule == rule for r in knobs) for rule in RULES]) <= per_rule
    assert sum(r.level == "rollback" for r in did) == one.attempt
    assert one.blamed <= rollbacks and one.attempt - one.blamed <= one.started.health.responses.returns
    assert len(one.quarantined) <= share * 20
    assert all(r.changes or r.quarantined for r in did if r.level == "intervene")
    if not watched and graves > interventions + rollbacks + one.started.health.responses.returns + share * 20:
        assert plan.stopped_by
    assert [r.number for r in did] == list(range(1, len(did) + 1))
    for path, knob in KNOBS.items():
        for change in (c for r in did for c in r.changes if c.knob == path):
            scale = reduce(getattr, path.split("."), one.started) if knob.relative else 1
            assert knob.low * scale <= change.after <= knob.high * scale


# Quarantine


def test_the_prompts_of_a_skipped_update_are_quarantined_once():
    one = responder(quarantine=0.5)
    first = act(one, "poison", batch=("p003", "p001")).responses[0]
    again = act(one, "poison", batch=("p001", "p002")).responses[0]
    assert (first.level, first.quarantined, again.quarantined) == ("intervene", ("p001", "p003"), ("p002",))
    assert first.did == "2 prompts into quarantine"
    assert one.quarantined == {"p001", "p002", "p003"}


def test_no_more_prompts_are_quarantined_than_their_share_of_all():
    one = responder(quarantine=0.1)
    (response,) = act(one, "poison", batch=["p000", "p001", "p002"]).responses
    assert (response.level, response.quarantined) == ("intervene", ("p000", "p001"))  # a tenth of twenty
    assert levels(act(one, "poison", batch=["p003"])) == [("poison", "rollback")]


def test_an_intervention_with_nothing_left_to_change_only_warns_unless_it_may_escalate():
    one = responder(per_rule=1)
    assert [levels(act(one, "mild", step=step)) for step in (10, 20)] == [[("mild", "intervene")], [("mild", "warn")]]
    assert one.attempt == 0


@pytest.mark.parametrize("batch", [(), ("p001",)])
def test_with_nothing_new_to_quarantine_the_ladder_goes_further(batch):
    one = responder(quarantine=1)
    one.quarantined = {"p001"}
    assert levels(act(one, "poison", batch=batch)) == [("poison", "rollback")]


# Knobs

SECOND = {"kind": "numeric", "marker": "#"}
TURNS = [
    ("learner.lr", {}, {"times": 0.5}, LR, 0.5 * LR),
    ("learner.lr", {}, {"times": 1e-9}, LR, 0.05 * LR),
    ("learner.lr", {}, {"times": 100}, LR, None),
    ("objective.ratio.high", {}, {"to": 0.3}, 0.28, 0.3),
    ("objective.ratio.high", {}, {"to": 9}, 0.28, 0.56),
    ("objective.kl.beta", {}, {"to": 0.01}, None, 0.01),
    ("objective.kl.beta", {"objective": {"kl": {"kind": "k3"}}}, {"times": 1000}, 0.001, 0.1),
    ("objective.entropy.coef", {}, {"to": 0.005}, None, 0.005),
    ("objective.correction.cap", {"objective": {"correction": None}}, {"to": 4}, None, 4),
    ("objective.entropy.coef", {}, {"to": 7}, None, 0.02),
    ("objective.correction.cap", {}, {"to": 0}, 2.0, 1.0),
    ("objective.correction.cap", {}, {"to": 99}, 2.0, 10.0),
    ("rollout.dynamic_sampling.max_attempts", {}, {"to": 4}, 2, 4),
    ("rollout.dynamic_sampling.max_attempts", {}, {"times": 1.3}, 2, 3),
    ("rollout.dynamic_sampling.max_attempts", {"rollout": {"dynamic_sampling": None}}, {"to": 99}, None, 8),
    ("rollout.max_repeats", {}, {"to": 0}, None, 1),
    ("reward.shaping", {}, {"to": -1}, 1.0, 0.0),
    ("audit.agreement", {"audit": {"second": SECOND}}, {"to": 1}, 0, 1),
    ("audit.second_judges", {"audit": {"second": SECOND}}, {"to": 1}, 0, 1),
]


@pytest.mark.parametrize(("knob", "sections", "how", "before", "after"), TURNS)
def test_a_knob_turns_within_its_bounds(knob, sections, how, before, after):
    one = turning(sections, [{"knob": knob, **how}])
    response = intervened(one)
    if after is None:
        assert (response.level, response.changes) == ("warn", ())
        return
    (change,) = response.changes
    assert (change.knob, change.before) == (knob, pytest.approx(before) if before else before)
    assert change.after == pytest.approx(after) == reduce(getattr, knob.split("."), one.settings)


def turning(sections: dict[str, Any], actions: list[dict[str, Any]]) -> Responder:
    rule = {"when": "entropy < 1", "why": "w", "level": "intervene", "action": actions}
    return Responder(settings(**sections, health={"rules": {"r": rule}}))


def intervened(one: Responder, situation: Situation = NOTHING_KNOWN) -> Response:
    """What is done about the rule of `turning`."""
    said = [Verdict("r", "intervene", 3, "w")]
    (response,) = one.respond(said, Monitor(one.started.health.rules), [], (), 20, situation).responses
    return response


FOLLOWS = {
    "objective": {
        "kl": {"kind": "k2", "beta": 0.001, "target": {"value": 0.1}},
        "entropy": {"coef": 0.001, "target": {"value": 0.2}},
    }
}
IN_FORCE = {"objective.kl.beta": 0.02, "objective.entropy.coef": 0.5}


@pytest.mark.parametrize(
    ("knob", "how", "changes", "said"),
    [
        ("objective.kl.beta", {"times": 2}, [(0.02, 0.04)], "objective.kl.target moves it on from there"),
        ("objective.kl.beta", {"to": 0.01}, [(0.02, 0.01)], "objective.kl.target moves it on from there"),
        ("objective.kl.beta", {"to": 0.001}, [], "started from 0.001, and its target has moved it"),
        ("objective.entropy.coef", {"times": 2}, [], "objective.entropy.coef is 0.5 already"),  # above its bounds
        ("objective.entropy.coef", {"times": 0.01}, [(0.5, 0.005)], "objective.entropy.target moves it on"),
    ],
)
def test_a_knob_that_a_controller_moves_is_turned_from_where_it_is_and_not_back(knob, how, changes, said):
    one = turning(FOLLOWS, [{"knob": knob, **how}, {"knob": "reward.shaping", "to": 0}])
    response = intervened(one, Situation(in_force=IN_FORCE))
    found = [(change.before, pytest.approx(change.after)) for change in response.changes if change.knob == knob]
    assert found == changes and said in response.did
    outcome = Outcome(response.number, 13, recovered=False, useless=True)
    assert bool(one.undo([outcome], 13)) == (not changes)


def test_every_knob_is_tried_here():
    assert {knob for knob, *_ in TURNS} == set(KNOBS)


@pytest.mark.parametrize(
    ("sections", "action", "reason"),
    [
        ({}, {"knob": "objective.kl.beta", "times": 2}, "objective.kl.beta has no value to multiply"),
        ({}, {"knob": "learner.lr", "to": LR}, "learner.lr is 0.01 already"),
        ({}, {"knob": "audit.agreement", "to": 1}, "audit.agreement cannot be 1 here"),
        ({"objective": {"correction": None}}, {"knob": "objective.correction.cap", "times": 2}, "no value to multiply"),
    ],
)
def test_a_knob_that_cannot_be_turned_says_why_and_the_next_one_is(sections, action, reason):
    response = intervened(turning(sections, [action, {"knob": "reward.shaping", "to": 0}]))
    assert [change.knob for change in response.changes] == ["reward.shaping"]
    assert reason in response.did


# Outcomes


WELL = {"all": Count(70, 100), "sums": Count(40, 50), "products": Count(30, 50)}
HALF = {"all": Count(55, 100), "sums": Count(40, 50), "products": Count(15, 50)}
"""Held-out answers of which one family is right half as often, and all together are right a fifth less often."""


BOTH = [(1, 5, False, {"entropy": [1, 1]}), (1, 6, True, {"entropy": [1, 9]})]


@pytest.mark.parametrize(
    ("entropies", "over", "held_out", "expected"),
    [
        ([9, 9, 1, 9, 9, 8, 9], False, None, [(1, 5, True, {"entropy": [1, 8]})]),  # its rule does not hold any more
        ([9, 9, 1, 9, 9, 2, 9], False, None, [(1, 5, False, {"entropy": [1, 2]})]),
        ([9, 9, 1, 9, 9, 9, 8, 9], False, {6: WELL}, [(1, 6, True, {"entropy": [1, 8]})]),  # waits for a measurement
        ([9, 9, 1, 9, 9, 9, 8], True, {}, [(1, 6, None, {"entropy": [1, 8]})]),  # and is not known without one
        ([9, 9, 1, 1, 1, 1, 9], False, None, BOTH),  # judged again until it has recovered
        ([9, 9, 1, 9, 1, 9, 9], False, None, [(1, 5, False, {"entropy": [1, 9]})]),  # the rule spoke again in between
        ([9, 9, 1, 9, 9], True, None, [(1, 4, None, {"entropy": [1, 9]})]),  # the run ended too early to tell
        ([9, 9, 1, 1, 1], True, None, [(1, 4, False, {"entropy": [1, 1]})]),
    ],
)
def test_a_response_is_judged_after_some_steps_by_whether_its_rule_still_holds(entropies, over, held_out, expected):
    """Of step 2, judged after 3 steps; held-out accuracy stays the same unless ``held_out`` has another for a step."""
    one = responder(judge_after=3)
    monitor = Monitor(one.started.health.rules)
    found = []
    for step, entropy in enumerate(entropies):
        said = monitor.observe(StepRecord(step, {"entropy": entropy}))
        counts = WELL if held_out is None else held_out.get(step, {})
        found += one.pending.outcomes(step, monitor, counts, over=over and step == len(entropies) - 1)
        one.respond([v for v in said if v.rule == "hm"], monitor, [START], (), 20)
    assert [(o.of, o.step, o.recovered, dict(o.signals)) for o in found if o.of == 1] == expected


def test_accuracy_that_does_not_come_back_is_no_recovery_and_the_family_is_named():
    one, monitor = responder(judge_after=3), Monitor(responder().started.health.rules)
    for step, counts in enumerate([WELL, {}, {}, {}, {}, HALF, {}, WELL]):
        said = monitor.observe(StepRecord(step, {"entropy": 1.0 if step == 1 else 9.0}))
        found = [(o.step, o.recovered, o.below) for o in one.pending.outcomes(step, monitor, counts)]
        assert found == {5: [(5, False, ("products",))], 7: [(7, True, ())]}.get(step, [])
        one.respond([v for v in said if v.rule == "hm"], monitor, [START], (), 20)


def test_what_accuracy_was_is_not_forgotten_by_going_back():
    one, monitor = responder(judge_after=1), watching(responder(), 9.0)
    one.pending.outcomes(0, monitor, WELL)
    act(one, "bad", step=2)
    again = restarted(one, judge_after=1)
    assert [o.below for o in again.pending.outcomes(9, monitor, HALF)] == [("products",)]


def test_no_outcome_is_due_twice_and_a_stop_has_none():
    one = responder(judge_after=1)
    monitor = watching(one)
    act(one, "hm", step=10)
    act(one, "over", step=10)
    assert [o.of for o in one.pending.outcomes(11, monitor, WELL)] == [1]
    assert one.pending.outcomes(99, monitor, {}, over=True) == []


def test_a_rollback_costs_the_steps_that_it_undid_and_no_step_twice():
    one = responder(judge_after=1, rollbacks=9)
    monitor = watching(one)
    act(one, "worse", step=57, saved=[START, Saved(40, 40, healthy=True)])
    act(one, "worse", step=70, saved=[START, Saved(40, 40, healthy=True)])  # 13 steps later, at 53 of progress
    act(one, "low", step=71)
    act(one, "worse", step=72, saved=[START])
    assert [o.cost_steps for o in one.pending.outcomes(99, monitor, WELL)] == [18, 13, 0, 42]
    assert one.lost == 73  # nothing is left of 73 steps


def test_steps_that_did_not_count_are_not_lost_by_a_rollback():
    one = responder(judge_after=1)
    monitor = watching(one)
    saved = [START, Saved(43, 40, healthy=True)]  # five steps without anything to learn, three of them before it
    one.respond([verdict("worse", 57)], monitor, saved, (), 20, Situation(repeated=5))
    assert [o.cost_steps for o in one.pending.outcomes(99, monitor, WELL)] == [13]


# State


def test_a_responder_goes_on_from_its_state_to_the_byte():
    script = ["low", "poison", "hm", "low", "bad", "high", "low", "bad", "over"]
    whole = responder(quarantine=0.5, judge_after=2)
    expected = [act(whole, rule, step=step, batch=(f"p{step:03d}",)) for step, rule in enumerate(script)]
    for cut in range(len(script) + 1):
        first = responder(quarantine=0.5, judge_after=2)
        before = [act(first, rule, step=step, batch=(f"p{step:03d}",)) for step, rule in enumerate(script[:cut])]
        second = restarted(first, quarantine=0.5, judge_after=2)
        assert second.settings == first.settings
        after = [act(second, rule, step=step, batch=(f"p{step:03d}",)) for step, rule in list(enumerate(script))[cut:]]
        assert before + after == expected
        assert second.state_dict() == whole.state_dict()


def test_a_state_with_other_fields_is_refused():
    one = responder()
    with pytest.raises(ValueError, match="state of the responder"):
        one.load_state_dict({**one.state_dict(), "surplus": 1})


# Which checkpoint


def at(step: int, dev: float | None = None, se: float = 0.02, *, healthy: bool = True) -> Saved:
    return Saved(step, step, healthy, dev, se if dev is not None else 0.0)


@pytest.mark.parametrize(
    ("saved", "clean", "step"),
    [
        ([], 99, None),
        ([at(0)], -1, 0),  # where the run began counts as before everything
        ([at(0, healthy=False)], -1, 0),
        ([at(0), at(10), at(20)], 99, 20),
        ([at(0), at(10), at(20)], 19, 10),
        ([at(0), at(10), at(20)], 20, 20),
        ([at(0), at(10), at(20)], 9, 0),
        ([at(0), at(10), at(20, healthy=False)], 99, 10),
        ([at(0), at(10, healthy=False), at(20, healthy=False)], 99, 0),
        ([at(0), at(10, 0.5), at(20, 0.47)], 99, 20),  # not measurably worse
        ([at(0), at(10, 0.5), at(20, 0.45)], 99, 10),
        ([at(0), at(10, 0.5), at(20, 0.45), at(30, 0.44)], 99, 10),
        ([at(0), at(10, 0.5), at(20, 0.45), at(30, 0.52)], 99, 30),
        ([at(0), at(10, 0.5), at(20)], 99, 10),  # what was measured goes before what was not
        ([at(0), at(10, 0.9), at(20, 0.5)], 5, 0),
        ([at(0, 0.9), at(10, 0.5), at(20, 0.5)], 99, 0),
    ],
)
def test_the_checkpoint_to_go_back_to(saved, clean, step):
    found = healthiest(saved, clean)
    assert (None if found is None else found.step) == step


# The largest norm


def guarded(*norms: float, enabled: bool = True) -> Guard:
    """One that has seen steps with these norms."""
    guard = Guard(ResponseSettings(norm_window=5, norm_factor=10, enabled=enabled))
    for norm in norms:
        guard.observe({"grad_norm": norm})
    return guard


@pytest.mark.parametrize(
    ("norms", "limit"),
    [
        ([], math.inf),
        ([2.0], 20),
        ([2.0, 1.0], 20),
        ([2.0, 1.0, 3.0], 30),
        ([2.0, 1.0, 3.0, 400.0], 300),  # one that was skipped counts as the limit
        ([2.0, 1.0, 3.0, 400.0, 2.5], 25),  # enough for a median
        ([2.0, 1.0, 3.0, 400.0, 2.5, *[4.0] * 5], 40),
    ],
)
def test_the_limit_is_a_multiple_of_the_largest_norm_until_there_are_enough_for_a_median(norms, limit):
    assert guarded(*norms).limit == limit


@pytest.mark.parametrize("norm", [None, math.nan, math.inf, 0.0])  # a median of 0 would skip all that have a gradient
def test_steps_without_a_finite_gradient_teach_no_norm(norm):
    guard = guarded(*[1.0] * 5)
    guard.observe({} if norm is None else {"grad_norm": norm})
    assert guard.state_dict() == guarded(*[1.0] * 5).state_dict()


def test_a_run_whose_gradients_stay_large_is_not_locked_out_for_good():
    assert guarded(*[1.0] * 5, *[1000.0] * 6).limit >= 1000  # norms up to it are let through again


def test_with_responses_off_there_is_no_limit():
    assert guarded(*[1.0] * 9, enabled=False).limit == math.inf


def test_the_guard_goes_on_from_its_state():
    first, second = guarded(*map(float, range(1, 9))), guarded()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.limit == first.limit == 60
    with pytest.raises(ValueError, match="state of the guard"):
        second.load_state_dict({})


def test_what_measures_the_policy_is_repaired_before_the_policy_is_taken_back() -> None:
    health = responder(per_rule=1).started.health.model_dump()
    one = Responder(settings(health=health, audit={"second": {"kind": "exact", "marker": "#"}}))
    assert levels(act(one, "sick", "judge")) == [("judge", "intervene"), ("sick", "warn")]
    assert levels(act(one, "sick", step=20)) == [("sick", "rollback")]


def test_numbers_that_are_none_are_undone_before_anything_is_repaired() -> None:
    assert levels(act(responder(), "judge", "numbers"))[0] == ("numbers", "rollback")
    assert levels(act(responder(), "sick", "over"))[0] == ("over", "stop")


@pytest.mark.parametrize(("later", "level"), [(0, "stop"), (19, "stop"), (20, "rollback")])
def test_a_policy_that_a_broken_part_measures_is_not_blamed(later: int, level: str) -> None:
    one = responder()  # without a second verifier, so nothing can be done about the first
    assert levels(act(one, "judge", step=10)) == [("judge", "warn")]
    (response,) = act(restarted(one), "sick", step=10 + later).responses
    assert response.level == level
    assert ("what the policy is measured by is broken (judge)" in response.did) == (level == "stop")


def test_other_rules_act_whatever_measures_the_policy() -> None:
    one = responder()
    act(one, "judge", step=10)
    assert levels(act(one, "bad", step=11)) == [("bad", "rollback")]


# A response that did not help


def useless(number: int) -> Outcome:
    return Outcome(number, 20, False, useless=True)


def test_a_knob_that_did_not_help_is_turned_back_once_and_says_so():
    one = responder()
    (turned,) = act(one, "mild").responses
    (back,) = one.undo([useless(turned.number)], 20)
    assert (back.rule, back.undoes, one.settings.learner.lr) == ("mild", turned.number, LR)
    assert back.changes == (Change("learner.lr", 0.5 * LR, LR),)
    assert one.undo([useless(turned.number)], 30) == ()


def test_a_knob_that_was_turned_again_since_and_a_return_are_not_taken_back():
    one = responder(per_rule=3, interventions=3)
    (first,) = act(one, "mild").responses
    act(one, "mild", step=11)
    (back,) = act(one, "bad", step=12).responses
    assert one.undo([useless(first.number), useless(back.number)], 20) == ()
    assert one.settings.learner.lr == 0.125 * LR


def test_what_may_be_taken_back_outlives_a_restart():
    one = responder()
    (turned,) = act(one, "mild").responses
    assert restarted(one).undo([useless(turned.number)], 20) == one.undo([useless(turned.number)], 20)
