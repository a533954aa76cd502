"""A run's health as text: the live line, the verdict on a run, the ledger as a table."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import report_fixture as fixture
from hypothesis import given
from hypothesis import strategies as st

from components.config import Settings
from components.config.judgement import RuleSettings
from components.health.responses import Ledger
from components.health.responses.under_watch import UNDER_WATCH
from components.health.signals import SIGNALS, find_signal
from components.health.summaries import health_line, ledger_rows, run_verdict
from components.health.summaries.answers import ADVICE, OTHERWISE, advice
from components.health.summaries.line import WIDTH
from components.health.summaries.markdown import plain, to_markdown
from components.health.summaries.phrases import changes, long_change, short_change
from components.types import Change, Outcome, Response, StepRecord, Verdict

RULES = {
    "entropy_collapse": RuleSettings(
        when="entropy < 0.5", why="entropy is low and held-out pass@k falls; the policy is losing answers it had"
    ),
    "nonfinite": RuleSettings(when="nonfinite > 0", level="stop", why="a loss or a gradient was NaN or infinite"),
    "nonfinite_tokens": RuleSettings(when="nonfinite_tokens > 0", why="tokens were left out of the loss"),
}
SHIPPED = fixture.settings().health.rules


def settings_with(*overrides):
    found = fixture.settings("train.steps=100", *overrides)
    return found.model_copy(update={"health": found.health.model_copy(update={"rules": RULES})})


SETTINGS = settings_with()
RECORDS = [StepRecord(step, fixture.signals(step, learns=True)) for step in range(100)]
LR = Change("learner.lr", 0.0002, 0.0001)
COLLAPSE = Verdict("entropy_collapse", "intervene", 57, "why", {"entropy": [0.31, 0.22]})


def response(level="rollback", step=57, number=1, **fields):
    common = {"asked": level, "reason": "why", "saw": {"entropy": [0.31, None, 0.22]}, "changes": (LR,)}
    common |= {"back_to": 40} if level == "rollback" else {}
    return Response(number=number, step=step, rule="entropy_collapse", level=level, **(common | fields))


def outcome(of=1, step=67, recovered=True, cost=18):
    return Outcome(of, step, recovered, {"entropy": [0.22, 0.35]}, cost)


def completed(**fields):
    return {"outcome": "completed", "steps": 100, "stopped_by": None, "reason": ""} | fields


def verdict(ledger=None, verdicts=(), settings=SETTINGS, **train):
    return run_verdict(settings, completed(**train), RECORDS, verdicts, ledger or Ledger())


def part(found, title):
    return next(one.sentences for one in found.parts if one.title == title)


@pytest.mark.parametrize(
    ("step", "verdicts", "ledger", "state"),
    [
        (57, [], Ledger(), "healthy"),
        (57, [Verdict("zero_variance", "warn", 57, "why")], Ledger(), "warned: zero_variance"),
        (66, [Verdict("zero_variance", "warn", 57, "why")], Ledger(), "warned: zero_variance"),
        (67, [Verdict("zero_variance", "warn", 57, "why")], Ledger(), "healthy"),
        (57, [COLLAPSE], Ledger((response("intervene"),)), "acted: entropy_collapse, lr x0.5"),
        (66, [COLLAPSE], Ledger((response("intervene"),)), "acted: entropy_collapse, lr x0.5"),
        (57, [COLLAPSE], Ledger((response(),)), "rolled back to 40"),
        (67, [COLLAPSE], Ledger((response(),), (outcome(),)), "recovered: entropy_collapse"),
        (67, [COLLAPSE], Ledger((response(),), (outcome(recovered=False),)), "not recovered: entropy_collapse"),
        (90, [COLLAPSE], Ledger((response(),), (outcome(),)), "healthy"),
        (57, [COLLAPSE], Ledger((response("stop", changes=()),)), "stopped: entropy_collapse"),
        (57, [Verdict("nonfinite", "stop", 57, "why")], Ledger(), "stopped: nonfinite"),
    ],
)
def test_the_live_line_ends_with_the_state_of_the_run(step, verdicts, ledger, state):
    line = health_line(
        StepRecord(step, {"accuracy": 0.5, "entropy": 0.25, "zero_variance_share": 0.12}), verdicts, ledger
    )
    assert line == f"acc 0.50  entropy 0.25  zero-var 12%  {state}"


def test_a_figure_that_was_not_measured_is_left_out():
    assert health_line(StepRecord(0, {"dev_pass_at_1": 0.4}), [], Ledger()) == "dev 0.40  healthy"
    assert health_line(StepRecord(0, {}), [], Ledger()) == "healthy"


def test_several_changes_and_prompts_taken_out_are_counted_in_the_line():
    acted = response("intervene", changes=(LR, Change("objective.entropy.coef", 0.0, 0.01)), quarantined=("a", "b"))
    assert "acted: entropy_collapse, lr x0.5, and 1 more, 2 prompts out" in health_line(
        RECORDS[57], [], Ledger((acted,))
    )


@given(st.text(min_size=1, max_size=200))
def test_the_line_is_never_longer_than_a_terminal_has_room_for(rule):
    line = health_line(RECORDS[40], [Verdict(rule, "warn", 40, "why")], Ledger())
    assert len(line) <= WIDTH


@pytest.mark.parametrize(
    ("change", "short", "long", "exact"),
    [
        (LR, "lr x0.5", "half the learning rate", "learner.lr 0.0002 → 0.0001"),
        (Change("learner.lr", 0.3, 0.21), "lr x0.7", "the learning rate at 0.21 instead of 0.3",
         "learner.lr 0.3 → 0.21"),
        (Change("objective.kl.beta", 0.0, 0.01), "kl 0 to 0.01", "the weight of the KL term at 0.01 instead of 0",
         "objective.kl.beta 0 → 0.01"),
        (Change("schedule.kind", "ads", "uniform"), "kind ads to uniform",
         "the schedule.kind at uniform instead of ads", "schedule.kind ads → uniform"),
        (UNDER_WATCH, "under watch", "the fault under watch", "stop at once → once the policy is harmed"),
        (Change("a.b", None, 2), "b none to 2", "the a.b at 2 instead of none", "a.b none → 2"),
        (Change("a.b", False, True), "b False to True", "the a.b at True instead of False", "a.b False → True"),
    ],
)  # fmt: skip
def test_a_change_has_a_short_a_long_and_an_exact_text(change, short, long, exact):
    assert (short_change(change), long_change(change)) == (short, long)
    assert changes(response("intervene", changes=(change,))) == [exact]


@pytest.mark.parametrize(
    ("found", "headline", "tone"),
    [
        (verdict(), "Healthy: 100 steps, no rule fired.", "good"),
        (verdict(verdicts=[Verdict("zero_variance", "warn", 9, "why")]),
         "Warned: 100 steps; zero variance fired, nothing was changed.", "unsure"),
        (verdict(Ledger((response(),), (outcome(),)), [COLLAPSE]),
         "Recovered: entropy collapse at step 57; the run went back to step 40 with half the learning rate, and "
         "recovered within 10 steps; cost 18 steps.", "good"),
        (verdict(Ledger((response("intervene"),), (outcome(recovered=False, cost=0),)), [COLLAPSE]),
         "Not recovered: entropy collapse at step 57; the run went on with half the learning rate, and had not "
         "recovered after 10 steps.", "bad"),
        (verdict(Ledger((response("intervene", 95),)), [COLLAPSE]),
         "Acted: entropy collapse at step 95; the run went on with half the learning rate, and the run ended before it "
         "could be judged.", "unsure"),
        (verdict(Ledger((response("intervene", 20, 1), response("rollback", 57, 2)),
                        (outcome(1, 30, False, 0), outcome(2))), [COLLAPSE]),
         "Recovered: the run was acted on 2 times (entropy collapse at steps 20 and 57); 1 of 2 recovered; cost "
         "18 steps.", "good"),
        (verdict(verdicts=[Verdict("nonfinite", "stop", 20, "why")], outcome="stopped", stopped_by="nonfinite"),
         "Stopped at step 20: nonfinite. A loss or a gradient was NaN or infinite.", "bad"),
        (verdict(Ledger((response("intervene", 20), response("stop", 57, 2, changes=()))), [COLLAPSE],
                 outcome="stopped", stopped_by="entropy_collapse"),
         "Stopped at step 57: entropy collapse, after 1 response that did not save the run. Entropy is low and "
         "held-out pass@k falls; the policy is losing answers it had.", "bad"),
        (verdict(settings=settings_with("health.enabled=false")),
         "Not watched: 100 steps with the health monitor switched off (health.enabled).", "unsure"),
        (run_verdict(SETTINGS, None, [], [], Ledger()),
         "Not trained: there is no training record, so there is nothing to judge.", "unsure"),
    ],
)  # fmt: skip
def test_the_headline_says_in_one_sentence_how_the_run_was(found, headline, tone):
    assert (found.headline, found.tone) == (headline, tone)


def test_the_parts_say_what_was_seen_done_and_won_what_it_cost_and_what_was_not_judged():
    acted = response(quarantined=("p012",), asked="intervene")
    found = verdict(Ledger((acted,), (outcome(),)), [COLLAPSE])
    assert "entropy_collapse (intervene) fired at step 57: entropy is low and held-out" in " ".join(
        part(found, "What was seen")
    )
    assert part(found, "What was done") == (
        "Step 57, entropy_collapse: the run went back to step 40 with half the learning rate and without training "
        "on 1 prompt (learner.lr 0.0002 → 0.0001; 1 prompt not trained on any more: p012); "
        "the rule had requested intervene.",
    )
    assert part(found, "Did it help") == (
        "Response 1, to entropy_collapse: recovered within 10 steps (entropy 0.22 → 0.35).",
    )
    assert part(found, "What it cost") == ("18 steps of 100 lost.", "1 prompt not trained on any more: p012.")
    assert "nonfinite_tokens never saw nonfinite_tokens." in part(found, "What could not be judged")


def test_a_roll_back_that_was_not_judged_still_costs_the_steps_that_it_threw_away():
    found = verdict(Ledger((response(),)), [COLLAPSE])
    assert part(found, "What it cost") == ("18 steps of 100 lost.",)
    assert "Whether response 1 helped: the run ended before that." in part(found, "What could not be judged")


def test_steps_that_a_stopped_run_did_not_reach_are_counted():
    found = run_verdict(SETTINGS, completed(outcome="stopped", stopped_by="nonfinite"), RECORDS[:21], [], Ledger())
    assert "79 steps of 100 were not run." in part(found, "What it cost")
    assert part(found, "What was done") == ("The run was stopped.",)


def test_the_ledger_has_a_row_for_every_response_with_its_outcome_or_without():
    rows = ledger_rows(Ledger((response(), response("intervene", 80, 2)), (outcome(),)))
    assert rows[0].changed == ["back to step 40", "learner.lr 0.0002 → 0.0001"]
    assert (rows[0].saw, rows[0].signals, rows[0].cost) == (["entropy 0.31, –, 0.22"], ["entropy 0.22 → 0.35"], 18)
    assert (rows[1].outcome, rows[1].cost) == ("the run ended before it could be judged", None)


@pytest.mark.parametrize("start", ADVICE)
def test_advice_is_about_signals_that_exist_and_settings_that_can_be_set(start):
    assert [name for name in SIGNALS if name.startswith(start)] or find_signal(f"{start}x")
    for dotted in re.findall(r"\b[a-z_]+\.[a-z_.]*[a-z_]", ADVICE[start]):
        section, _, rest = dotted.partition(".")
        assert section in Settings.model_fields, dotted
        assert rest.partition(".")[0] in type(getattr(SETTINGS, section)).model_fields, dotted


def test_a_second_roll_back_is_named_by_the_steps_that_the_policy_has_behind_it():
    again = replace(response(), back_to=83, back_progress=40)
    found = verdict(Ledger((again,), (outcome(),)), [COLLAPSE])
    assert "the run went back to step 40 with" in found.headline
    assert "back to step 40" in ledger_rows(Ledger((again,)))[0].changed


def test_a_run_that_ends_below_its_best_in_a_family_is_worse_whatever_no_rule_said():
    at = {10: {"all": [70, 100], "sums": [40, 50], "products": [36, 50]}}
    at[60] = {"all": [55, 100], "sums": [40, 50], "products": [15, 50]}
    records = [replace(r, notes={"held_out": at[r.step]}) if r.step in at else r for r in RECORDS]
    found = run_verdict(SETTINGS, completed(), records, [], Ledger())
    assert (found.state, found.tone) == ("worse", "bad")
    said = "held-out accuracy of products was 36 of 50 at its best and is 15 of 50 at the end"
    assert said in found.headline
    recovered = run_verdict(SETTINGS, completed(), records, [COLLAPSE], Ledger((response(),), (outcome(),)))
    assert recovered.state == "not recovered"


def test_that_no_second_verifier_looks_is_said():
    said = part(verdict(settings=settings_with("audit.second=null")), "What could not be judged")
    assert any(one.startswith("Whether the verifier is right: no second verifier") for one in said)


@pytest.mark.parametrize("rule", SHIPPED)
def test_every_rule_has_advice_of_its_own(rule):
    assert advice(rule, SHIPPED) != OTHERWISE


def test_the_advice_on_an_unknown_rule_is_to_look():
    assert advice("gone", SETTINGS.health.rules) == OTHERWISE


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("entropy_collapse", "entropy_collapse"),
        ("_a_ *b* [c](d) <e> `f` | \\", r"\_a\_ \*b\* \[c\](d) \<e\> \`f\` \| \\"),
        ("a\nb\u202ec", "a b\\\\u202ec"),
    ],
)
def test_markdown_shows_what_came_from_data_and_interprets_none_of_it(raw, shown):
    assert plain(raw) == shown


def test_the_text_has_headline_parts_and_ledger():
    ledger = Ledger((response(quarantined=("p|1",)),), (outcome(),))
    text = to_markdown("demo", verdict(ledger, [COLLAPSE]), ledger_rows(ledger))
    assert text.startswith("# Health of run demo\n\n**Recovered: entropy collapse at step 57;")
    assert "## What to do next" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
    assert "p\\|1" in table[-1]
    assert "## Ledger" not in to_markdown("demo", verdict(), [])


def test_warnings_in_the_ledger_are_no_responses_that_changed_anything():
    noted = response("warn", changes=())
    found = verdict(Ledger((noted,), (outcome(recovered=False, cost=0),)), [COLLAPSE])
    assert found.headline == "Warned: 100 steps; entropy collapse fired, nothing was changed."
    assert part(found, "What was done") == ("Nothing was changed while the run went on.",)
    assert health_line(RECORDS[60], [], Ledger((noted,))).endswith("healthy")


def test_an_outcome_that_could_not_be_judged_is_no_failure():
    found = verdict(Ledger((response(),), (outcome(recovered=None),)), [COLLAPSE])
    assert found.state == "acted"
    assert "Whether response 1 helped: the run ended before that." in part(found, "What could not be judged")


def test_a_run_that_was_stopped_and_went_back_says_which_policy_it_kept():
    stop = response("stop", 57, asked="intervene", changes=(), back_to=40)
    found = verdict(Ledger((stop,)), [COLLAPSE], outcome="stopped", stopped_by="entropy_collapse")
    assert found.headline.startswith("Stopped at step 57: entropy collapse. ")
    assert part(found, "What was done") == (
        "Step 57, entropy_collapse: the run was stopped, and the policy of step 40 kept; the rule had requested "
        "intervene.",
    )


def test_prompts_in_quarantine_are_reported_without_a_change_of_a_knob():
    taken = response("intervene", changes=(), quarantined=("a", "b"), did="skipped the update; 2 prompts in quarantine")
    found = verdict(Ledger((taken,), (outcome(cost=0),)), [COLLAPSE])
    assert "the run went on without training on 2 prompts, and recovered within 10 steps." in found.headline


def test_what_would_have_been_done_is_said_where_responses_are_switched_off():
    settings = settings_with("health.responses.enabled=false")
    found = verdict(Ledger((response("warn", asked="rollback", changes=()),)), [COLLAPSE], settings)
    assert part(found, "What was done")[0] == (
        "Responses were switched off (health.responses.enabled), though entropy_collapse requested more than a warning."
    )


def test_a_run_whose_monitor_broke_is_never_called_healthy():
    broken = StepRecord(60, RECORDS[60].signals, {"monitor_failed": "ZeroDivisionError: a bug"})
    records = [*RECORDS[:60], broken, *RECORDS[61:]]
    found = run_verdict(SETTINGS, completed(), records, [], Ledger())
    assert found.headline == "Not watched: the health monitor broke at step 60, and judged no later step."
    assert "Everything from step 60 on: ZeroDivisionError: a bug." in part(found, "What could not be judged")
    assert part(found, "What to do next")[0].startswith("Do not approve")
    assert health_line(broken, [], Ledger()).endswith("  not watched: the monitor broke")


def test_the_live_line_says_that_a_run_goes_on_under_watch_until_it_has_recovered() -> None:
    said = [Verdict("entropy_collapse", "stop", 57, "why"), Verdict("entropy_collapse", "stop", 58, "why")]
    watch, noted = response("intervene", changes=(UNDER_WATCH,)), response("warn", step=58, number=2)
    lines = [
        health_line(RECORDS[60], said, Ledger((watch, noted), outcomes))
        for outcomes in ((), (Outcome(1, 59, False),), (Outcome(1, 59, True),))
    ]
    assert [line.rpartition("  ")[2] for line in lines] == [
        "under watch: entropy_collapse",
        "under watch: entropy_collapse",
        "recovered: entropy_collapse",
    ]
