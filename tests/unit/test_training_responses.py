"""What the real loop does about a verdict: knobs, quarantine, roll-back, stop; no kill changes a byte of it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from factories import settings, workspace
from training_runs import judged_by_parity, killed, outputs, records, train, watched

from components.canaries.items import Measured, Outcome
from components.config import Settings
from components.errors import InputError
from components.files import read_json, sha256_tree, write_jsonl, write_text
from components.health.monitor import replay
from components.health.records import read_records, read_verdicts
from components.health.responses import read_ledger
from components.layout import Layout
from components.rollout import Collector, Rollout
from components.stages import train as stage
from components.training import canaries as training_canaries
from components.training.update import hand_over
from components.types import Response
from tests.benchmarks.health.faults.base import Around
from tests.tiers import slow_but

__all__ = ["judged_by_parity"]  # of every test here

STATE = ("learner/shard-00001-of-00001.safetensors", "learner.json")


def at(step: int, level: str, *action: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A rule that fires at one step of the log."""
    when = f"step > {step - 0.5} and step < {step + 0.5} and progress >= 0"
    return {"when": when, "level": level, "action": list(action), "why": f"step {step}", **more}


def acting(rules: dict[str, Any], steps: int = 5, health: dict[str, Any] | None = None, **sections: Any) -> Settings:
    return settings(**sections, health={"rules": rules, **(health or {})}, train={"steps": steps})


def did(layout: Layout) -> list[tuple[int, str, str]]:
    return [(r.step, r.rule, r.level) for r in responses(layout)]


def responses(layout: Layout) -> tuple[Response, ...]:
    return read_ledger(layout.ledger).responses


def signal(layout: Layout, name: str) -> list[float]:
    return [row["signals"][name] for row in records(layout)]


HALVE = {"knob": "learner.lr", "times": 0.5}


# A knob


def test_an_intervention_changes_the_next_update_and_the_ledger_says_from_what_to_what(tmp_path):
    layout = train(tmp_path, acting({"odd": at(2, "intervene", HALVE)}))
    assert signal(layout, "lr") == [1e-2, 1e-2, 1e-2, 5e-3, 5e-3]
    (response,) = responses(layout)
    assert (response.step, response.rule, response.asked, response.level) == (2, "odd", "intervene", "intervene")
    assert [(c.knob, c.before, c.after) for c in response.changes] == [("learner.lr", 1e-2, 5e-3)]
    assert response.saw == {"progress": [0.0, 1.0, 2.0]}
    (outcome,) = read_ledger(layout.ledger).outcomes
    assert (outcome.of, outcome.recovered, outcome.cost_steps) == (1, None, 0)


def test_up_to_the_response_the_run_is_that_without_it(tmp_path):
    changed = train(tmp_path / "a", acting({"odd": at(2, "intervene", HALVE)}))
    plain = train(tmp_path / "b")
    same = [a["signals"] == b["signals"] for a, b in zip(records(changed), records(plain), strict=True)]
    assert same == [True, True, True, False, False]


def test_an_intervention_on_the_weight_of_a_term_that_was_off_switches_it_on(tmp_path):
    layout = train(tmp_path, acting({"far": at(1, "intervene", {"knob": "objective.kl.beta", "to": 0.05})}))
    assert [row["signals"].get("kl_beta") for row in records(layout)] == [None, None, 0.05, 0.05, 0.05]


def test_an_intervention_on_a_weight_that_follows_a_measurement_multiplies_the_one_in_force(tmp_path):
    kl = {"kind": "k2", "beta": 0.001, "target": {"value": 1e-9, "horizon": 1}}  # a fifth up with every update
    double = {"far": at(2, "intervene", {"knob": "objective.kl.beta", "times": 2})}
    layout = train(tmp_path, acting(double, objective={"kl": kl}))
    betas = signal(layout, "kl_beta")
    (change,) = responses(layout)[0].changes
    assert change.after == 2 * change.before != 2 * 0.001
    assert betas[3] / betas[2] == pytest.approx(2 * betas[2] / betas[1]), betas


# A roll-back

BACK = {"sick": at(3, "rollback")}


@pytest.fixture(scope="module")
def rolled_back(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Five steps of progress in seven: after step 3 the run goes back to the checkpoint after two."""
    return train(tmp_path_factory.mktemp("rolled"), acting(BACK))


def test_a_rollback_is_logged_and_the_log_only_grows(rolled_back):
    rows = records(rolled_back)
    assert [row["step"] for row in rows] == list(range(7))
    assert signal(rolled_back, "progress") == [0, 1, 2, 3, 2, 3, 4]
    assert [row["notes"].get("rolled_back_to") for row in rows] == [None, None, None, 2, None, None, None]
    metrics = read_json(rolled_back.train_metrics)
    assert {key: metrics[key] for key in ("steps", "progress", "rollbacks", "checkpoint_step", "outcome")} == {
        "steps": 7,
        "progress": 5,
        "rollbacks": 1,
        "checkpoint_step": 5,
        "outcome": "completed",
    }
    (response,), (outcome,) = responses(rolled_back), read_ledger(rolled_back.ledger).outcomes
    assert (response.level, response.back_to, response.changes) == ("rollback", 2, ())
    assert (outcome.of, outcome.cost_steps) == (1, 2)


def test_a_rollback_restores_everything_to_where_a_run_stands_that_never_left(rolled_back, tmp_path):
    never = train(tmp_path, acting(BACK, steps=2)).state / "train" / "step-000002"
    back = rolled_back.state / "train" / "step-000004"
    assert [(back / name).read_bytes() for name in STATE] == [(never / name).read_bytes() for name in STATE]
    here, there = (read_json(folder / "state.json") for folder in (back, never))
    restored = ("schedule", "guard", "progress", "dev")
    assert {key: here[key] for key in restored} == {key: there[key] for key in restored}
    of_the_run = ("golden", "broken", "drawn")  # what is known of it stays
    for known in (here["evidence"], there["evidence"]):
        assert all(known.pop(name) is not None for name in of_the_run)
    assert here["evidence"] == there["evidence"]
    fired = [streak.pop("fired") for streak in here["monitor"]["streaks"].values()]
    for streak in there["monitor"]["streaks"].values():
        streak.pop("fired")
    assert here["monitor"] == there["monitor"]
    assert any(step is not None for step in fired)  # a cool-down outlasts the roll-back


def test_after_a_rollback_other_completions_are_sampled(rolled_back):
    undone, again = (records(rolled_back)[step]["signals"] for step in (2, 4))
    assert (undone["progress"], again["progress"]) == (2, 2)
    assert undone["lr"] == again["lr"]
    assert undone["entropy"] != again["entropy"]


def test_the_gate_can_replay_a_log_with_a_rollback(rolled_back):
    found = replay(acting(BACK).health.rules, read_records(rolled_back.records))
    assert found == read_verdicts(rolled_back.train / "verdicts.jsonl")


def test_a_rule_that_holds_again_after_every_rollback_ends_the_run_within_its_budget(tmp_path):
    rule = {"when": "progress > 2.5", "level": "rollback", "action": [HALVE], "why": "w"}
    layout = train(tmp_path, acting({"always": rule}))
    assert [level for _, _, level in did(layout)] == ["rollback", "rollback", "stop"]
    metrics = read_json(layout.train_metrics)
    assert (metrics["outcome"], metrics["stopped_by"], metrics["rollbacks"]) == ("stopped", "always", 2)
    assert sorted(set(signal(layout, "lr")), reverse=True) == [1e-2, 5e-3, 2.5e-3]


# A stop


@pytest.mark.parametrize(("enabled", "kept"), [(True, 2), (False, 4)])
def test_a_stop_keeps_the_last_healthy_policy_and_with_responses_off_the_present_one(tmp_path, enabled, kept):
    chosen = acting({"over": at(3, "stop")}, health={"responses": {"enabled": enabled}})
    layout = train(tmp_path / "stopped", chosen)
    metrics = read_json(layout.train_metrics)
    assert (metrics["outcome"], metrics["steps"], metrics["checkpoint_step"]) == ("stopped", 4, kept)
    until_then = train(tmp_path / "plain", settings(train={"steps": kept}))
    assert sha256_tree(layout.train_checkpoint) == sha256_tree(until_then.train_checkpoint)


def test_with_responses_off_only_a_stop_acts(tmp_path):
    rules = {"a": at(1, "intervene", HALVE), "b": at(2, "rollback", HALVE), "c": at(2, "warn")}
    off = train(tmp_path / "off", acting(rules, health={"responses": {"enabled": False}}))
    assert did(off) == [(1, "a", "warn"), (2, "b", "warn"), (2, "c", "warn")]
    assert sha256_tree(off.train_checkpoint) == sha256_tree(train(tmp_path / "plain").train_checkpoint)


# Faults


class Faulty(Around):
    """A learner with a fault in one of its steps."""

    def __init__(self, learner: Any, step: int, fault: str) -> None:
        super().__init__(learner)
        self._left, self._fault = step, fault

    def step(self, batch: Any, seed: int, norm_limit: float) -> dict[str, float]:
        self._left -= 1
        limit = 0.0 if self._left == -1 and self._fault == "norm" else norm_limit
        signals: dict[str, float] = self.inner.step(batch, seed, limit)
        if self._left == -1 and self._fault == "weights":
            next(iter(self.inner._policy.weights().values())).view(-1)[0] = math.nan
        return signals


def test_the_prompts_of_a_skipped_update_are_never_trained_on_again(tmp_path, monkeypatch):
    rules = {
        "poison": {"when": "updates_skipped > 0", "level": "intervene", "action": [{"knob": "quarantine"}], "why": "w"}
    }
    chosen = acting(rules, steps=8, health={"responses": {"quarantine": 0.5}}, rollout={"dynamic_sampling": None})
    trained: list[set[str]] = []
    step = Collector.step

    def noted(self: Collector, *how: Any) -> Rollout:
        rollout = step(self, *how)
        trained.append({group.prompt.id for group in rollout.trained})
        return rollout

    monkeypatch.setattr(Collector, "step", noted)
    state, found = watched(tmp_path, chosen, wrap_learner=lambda learner: Faulty(learner, 2, "norm"))
    assert [record.signals.get("updates_skipped") for record in found[:4]] == [0.0, 0.0, 2.0, 0.0]
    assert state.responder.quarantined == trained[2]
    assert not any(trained[2] & later for later in trained[3:])
    assert any(trained[2] & earlier for earlier in trained[:2]) or len(trained[2]) == 4
    assert [record.signals["quarantined"] for record in found] == [0, 0, 0, *[pytest.approx(4 / 12)] * 5]


def test_weights_that_are_no_numbers_are_never_sampled_from_and_the_run_goes_back(tmp_path):
    given: list[bool] = []

    def wrap(engine: Any) -> Any:
        load = engine.load_weights

        def checked(weights: dict[str, torch.Tensor]) -> None:
            given.append(all(bool(w.isfinite().all()) for w in weights.values()))
            load(weights)

        engine.load_weights = checked
        return engine

    rules = {"dead": {"when": "nonfinite_weights > 0", "level": "rollback", "why": "w"}}
    faulty: Any = {"wrap_learner": lambda learner: Faulty(learner, 3, "weights"), "wrap_engine": wrap}
    state, found = watched(tmp_path, acting(rules), **faulty)
    assert [record.signals["nonfinite_weights"] for record in found] == [0, 0, 0, 1, 0, 0, 0]
    assert given == [True] * 7  # six healthy steps and the return
    assert (state.progress, state.responder.attempt) == (5, 1)
    assert all(bool(w.isfinite().all()) for w in state.learner.weights().values())


def test_weights_are_handed_over_unless_a_tensor_holds_what_is_no_number():
    given: list[Any] = []
    engine: Any = SimpleNamespace(load_weights=given.append)
    good, bad = torch.ones(2), torch.tensor([1.0, math.inf])
    for weights, broken in (({"a": good}, 0.0), ({"a": bad, "b": bad, "c": good}, 2.0)):
        learner: Any = SimpleNamespace(weights=lambda weights=weights: weights, broken=lambda broken=broken: broken)
        assert hand_over(learner, engine.load_weights) == {"nonfinite_weights": broken}
    assert given == [{"a": good}]


# Killed and started again

EVENTFUL = {
    "slow": at(1, "intervene", HALVE),
    "sick": at(3, "rollback", HALVE),
    "late": at(5, "intervene", {"knob": "objective.kl.beta", "to": 0.01}, {"knob": "reward.shaping", "to": 0}),
    "note": {"when": "progress > 3.5", "cooldown": 1, "level": "warn", "why": "w"},
}
BOUNDARIES = [
    *(("checkpoint", times, after) for times in range(1, 6) for after in (False, True)),
    *(("roll_back", 1, after) for after in (False, True)),
    *(("enter", times, after) for times in (2, 4, 6, 8) for after in (False, True)),
    *(("append", times, True) for times in (4, 5, 7)),
]

QUICK = [("checkpoint", 3, False), ("roll_back", 1, False), ("roll_back", 1, True), ("append", 5, True)]


def eventful() -> Settings:
    return acting(EVENTFUL, health={"responses": {"judge_after": 2}})


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    return train(tmp_path_factory.mktemp("whole"), eventful())


def test_the_eventful_run_has_all_kinds_of_responses(uninterrupted):
    assert did(uninterrupted) == [
        (1, "slow", "intervene"),
        (3, "sick", "rollback"),
        (5, "late", "intervene"),
        (8, "note", "warn"),
    ]
    assert [o.recovered for o in read_ledger(uninterrupted.ledger).outcomes] == [True, True, True, False]


@pytest.mark.parametrize(("method", "times", "after"), slow_but(BOUNDARIES, *QUICK))
def test_a_run_killed_anywhere_around_a_rollback_ends_with_the_same_bytes(
    uninterrupted, tmp_path, method, times, after
):
    layout = workspace(tmp_path)
    with killed(method, times, after=after):
        stage.run(eventful(), layout)
    assert outputs(train(tmp_path, eventful())) == outputs(uninterrupted)


def test_a_run_killed_after_every_checkpoint_ends_with_the_same_bytes(uninterrupted, tmp_path):
    layout = workspace(tmp_path)
    for times in (1, 1, 1, 1, 1):
        with killed("checkpoint", times):
            stage.run(eventful(), layout)
    assert outputs(train(tmp_path, eventful())) == outputs(uninterrupted)


# What else a response may change


def test_with_agreement_right_is_what_both_verifiers_accept_and_their_disagreement_is_still_measured(tmp_path):
    rules = {"differ": at(1, "intervene", {"knob": "audit.agreement", "to": 1})}
    second = {"second": {"kind": "exact", "marker": "#"}, "live_share": 1.0}
    layout = train(tmp_path, acting(rules, steps=3, audit=second))
    assert signal(layout, "agreement") == [0, 0, 1]
    before, after = (records(layout)[step]["signals"] for step in (1, 2))
    assert before["accuracy"] > 0.2
    # Right is what both accept, and the second accepts nothing.
    assert (before["unscorable_share"], after["unscorable_share"], after["accuracy"]) == (0, 0, 0)
    assert after["metric_disputed"] == pytest.approx(after["second_disagreement"])
    assert after["second_disagreement"] > 0.2 < before["second_disagreement"]
    assert after["second_compared"] == before["second_compared"] * after["attempts"] / before["attempts"]


def canary(root: Any, *questions: tuple[str, str]) -> str:
    rows = [
        {"question": question, "answer": answer} for question, answer in questions or [("1+1=", "2"), ("2+2=", "4")]
    ]
    write_jsonl(root / "probe.jsonl", rows)
    return str(root / "probe.jsonl")


def test_canaries_are_answered_when_due(tmp_path):
    sums = {"path": canary(tmp_path), "every": 2, "jump": None}
    layout = train(tmp_path, acting({}, health={"canaries": {"sums": sums}}))
    found = [row["signals"].get("canary_sums") for row in records(layout)]
    assert [value is not None for value in found] == [True, False, True, False, True]
    assert {value for value in found if value is not None} <= {0.0, 0.5, 1.0}


def test_canaries_cost_the_training_nothing_but_time(tmp_path):
    """By generation and by likelihood in every step, and not a byte of the policy is another."""
    sets = {"sums": {"path": canary(tmp_path), "every": 1}, "carries": LIKELY}
    probed, plain = train(tmp_path / "probed", acting({}, health={"canaries": sets})), train(tmp_path / "plain")
    assert {"canary_sums", "likelihood_carries"} <= set(records(probed)[0]["signals"])
    assert sha256_tree(probed.train_checkpoint) == sha256_tree(plain.train_checkpoint)


LIKELY = {"generated": "carries", "items": 8, "by": ["likelihood"], "every": 1}


def test_a_set_of_level_stop_ends_the_training_with_the_policy_from_before_the_fall(tmp_path, monkeypatch):
    falling = iter([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    monkeypatch.setattr(training_canaries, "measure_likelihood", lambda probes, *_: scored(probes, next(falling)))
    sets = {"carries": {**LIKELY, "level": "stop"}}
    rules = {"stops": {"when": "last(canaries_beyond_stop) > 0", "level": "stop", "why": "w"}}
    layout = train(tmp_path, acting(rules, health={"canaries": sets}))
    metrics = read_json(layout.train_metrics)
    assert (metrics["outcome"], metrics["stopped_by"], metrics["steps"]) == ("stopped", "stops", 4)
    assert metrics["checkpoint_step"] <= 2  # the last step before the first score that was low


def scored(probes, score):
    return Measured(probes, "likelihood", tuple(Outcome(score) for _ in probes.probes))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no probes"),
        ('{"question": "1+1="}\n', "a probe needs `question` and `answer`"),
        ('{"question": "1+1=", "answer": 2}\n', "a probe needs `question` and `answer`"),
        ('{"question": "", "answer": "2"}\n', "a probe needs `question` and `answer`"),
        ('{"question": "1+1=", "answer": "2"}\n[1]\n', "expected a JSON object"),
        ('{"question"', "not valid JSON"),
        (None, "input not found"),
    ],
)
def test_a_malformed_probe_set_stops_the_run_before_it_starts(tmp_path, text, problem):
    if text is not None:
        write_text(tmp_path / "probe.jsonl", text)
    chosen = acting({}, health={"canaries": {"sums": {"path": str(tmp_path / "probe.jsonl")}}})
    with pytest.raises(InputError, match=problem) as caught:
        train(tmp_path / "run", chosen)
    assert "probe.jsonl" in str(caught.value)
    assert not (Layout(tmp_path / "run").state / "train" / "records.jsonl").exists()


@pytest.mark.parametrize("rule", [{"when": "entropyy < 1"}, {"when": "entropy < 1", "unless": "1 < 2"}])
def test_a_monitor_that_cannot_be_built_stops_the_run_before_it_starts(tmp_path, rule):
    with pytest.raises(InputError, match="health rule 'odd'") as caught:
        train(tmp_path, acting({"odd": {**rule, "why": "w"}}))
    assert caught.value.exit_code == 2
    assert not (Layout(tmp_path).state / "train" / "records.jsonl").exists()
